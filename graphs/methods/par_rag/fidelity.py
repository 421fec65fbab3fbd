"""Fidelity of PAR-RAG to its paper (Zhang et al., 2025), part by part."""

from sleuth.graphs.core import PaperPart

PARTS = (
    PaperPart(
        part="the whole plan in one call, each step with a thought and a question",
        source="Sec. 3.4, Algorithm 1",
        status="as published",
        code=("graphs.methods.par_rag.steps.plan_steps", "agents.roles.planning.PLAN_IN_ORDER"),
    ),
    PaperPart(
        part="steps one after the other, in the order of the plan",
        source="Sec. 3.5, Algorithm 1",
        status="as published",
        code=("graphs.methods.par_rag.steps.ready_steps",),
        settings=("parallel",),
    ),
    PaperPart(
        part="coarse retrieval: ten passages by the vector of the step's question",
        source="Sec. 3.5; Sec. 4",
        status="as published",
        code=("graphs.methods.par_rag.graph.retrieve_coarse",),
        settings=("coarse_mode", "coarse_k"),
    ),
    PaperPart(
        part="the draft is a statement with citations, from the coarse passages",
        source="Sec. 3.5, App. A.4.2",
        status="as published",
        code=("graphs.methods.par_rag.steps.draft_step", "agents.roles.reading.DRAFT_SENTENCE"),
        settings=("sentences",),
    ),
    PaperPart(
        part="all steps are searched for and reviewed alike",
        source="Sec. 3.5, Algorithm 1",
        status="as published",
        code=("graphs.methods.par_rag.graph.retrieve_coarse", "graphs.methods.par_rag.graph.draft"),
        settings=("search_all", "skip_supported"),
    ),
    PaperPart(
        part="fine retrieval with the draft as the query",
        source="Sec. 3.6, Algorithm 1",
        status="as published",
        code=("graphs.methods.par_rag.graph.retrieve_fine",),
        settings=("fine_with_question",),
    ),
    PaperPart(
        part="fine retrieval: ten passages by vectors and by PageRank over a knowledge graph of triples",
        source="Sec. 3.3, Sec. 3.6",
        status="not implemented",
        settings=("fine_mode", "fine_k"),
        note="vectors and keywords in its place; the default is search over the graph of names",
    ),
    PaperPart(
        part="the review keeps the draft, revises it or asks a new question",
        source="Sec. 3.6, App. A.4.3",
        status="as published",
        code=("graphs.methods.par_rag.graph.review", "agents.roles.judging.REVIEW_STEP"),
        settings=("max_returns",),
    ),
    PaperPart(
        part="a revised answer replaces the draft",
        source="Sec. 3.6",
        status="as published",
        code=("graphs.methods.par_rag.steps.review_step",),
        settings=("check_revisions",),
    ),
    PaperPart(
        part="number of new questions for a step",
        source="App. A.4.3",
        status="our reading",
        code=("graphs.methods.par_rag.graph.review",),
        settings=("max_requeries",),
        note="one; the paper does not state a limit",
    ),
    PaperPart(
        part="the next question is rewritten with the answer",
        source="Sec. 3.5, Algorithm 1",
        status="as published",
        code=("graphs.methods.par_rag.steps.refine_step", "agents.roles.planning.REFINE"),
    ),
    PaperPart(
        part="the answer from the question and all steps with their questions, answers and cited sources",
        source="Sec. 3.5",
        status="as published",
        code=("graphs.methods.par_rag.graph.answer", "agents.roles.reading.ANSWER_WITH_SOURCES"),
        settings=("answer_with_sources",),
    ),
    PaperPart(
        part="ablation: no plan",
        source="Sec. 5.2, Fig. 2",
        status="as published",
        code=("graphs.methods.par_rag.steps.plan_steps",),
        settings=("plan",),
    ),
    PaperPart(
        part="ablation: no review",
        source="Sec. 5.2, Fig. 2",
        status="as published",
        code=("graphs.methods.par_rag.graph.draft",),
        settings=("review",),
    ),
)
