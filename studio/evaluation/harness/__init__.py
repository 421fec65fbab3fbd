"""Runs of every system on every question, in this process or on a Ray cluster, and a judge model's opinions."""

from sleuth.studio.evaluation.harness.cluster import WorkerPlan, open_cluster
from sleuth.studio.evaluation.harness.runs import Harness, Job, JobRunner, judge_all, make_jobs

__all__ = ["Harness", "Job", "JobRunner", "WorkerPlan", "judge_all", "make_jobs", "open_cluster"]
