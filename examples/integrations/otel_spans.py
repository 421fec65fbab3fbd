# Spans of a run go to the collector of OTEL_EXPORTER_OTLP_ENDPOINT: python otel_spans.py QUESTION
import sys

import sleuth
from sleuth import sync

with sync.open(sleuth.Settings(tracing="otel")) as app:
    print(app.ask(sys.argv[1]).text)
