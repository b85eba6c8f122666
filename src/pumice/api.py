"""All names that the author of a plugin imports.

    from pumice.api import F64, NodeRows, Session, TaskClass, plugin, points

A name that is here is removed only after a note in the guide of an earlier release. Tests of a plugin also import
``pumice.testing``. docs/rows.md lists what rows and handles can be asked, docs/points.md what points ask.

``points``: the decorators of Volcano's language, one per extension point, including those that other languages share.
The points of KAI's language are ``pumice.kai.points``. Built-in plugins import from here like others; what else they
import is listed with its reason (``tests/tidy/test_plugins.py``).
"""

from __future__ import annotations

from pumice.columns.column import Column
from pumice.columns.counting import HELD, PENDING, READY, VALID
from pumice.columns.dtypes import CPU, EPS, F64, I32, I64, MEMORY, AnyArray, Bool, read_only
from pumice.columns.job_rows import JobRows
from pumice.columns.label_values import LabelValues
from pumice.columns.nodes import FUTURE, IDLE, USED
from pumice.columns.rows import Candidates, ClassRows, NodeRows, TaskRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Job, Node, Queue, SubJob, Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.combine import MayGo, Vote
from pumice.framework.plugin.errors import PluginError, PluginFault, PolicyError
from pumice.framework.plugin.filter_result import Code, FilterResult, Invalid, Unfit, gather
from pumice.framework.plugin.incremental import FilterInTurn, Filters, ScoreInTurn, TaskFilter, TaskScore, WeightedSum
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import JOBS, NOW, PODS, QUEUES, ROWS, Question
from pumice.model.blockers import QueueLimit, ResourceLimit
from pumice.model.decisions import Refusal
from pumice.model.pod import Pod, PodSpec
from pumice.model.quantity import DurationError, duration_or, parse_duration
from pumice.model.resources import Resource
from pumice.model.status import PodGroupPhase, TaskStatus
from pumice.model.usage import UsageWindow
from pumice.model.workloads.podgroup import PodGroup
from pumice.volcano import points
from pumice.volcano.eviction.context import EvictionContext, EvictionKind

__all__ = [
    "CPU",
    "EPS",
    "F64",
    "FUTURE",
    "HELD",
    "I32",
    "I64",
    "IDLE",
    "JOBS",
    "MEMORY",
    "NOW",
    "PENDING",
    "PODS",
    "QUEUES",
    "READY",
    "ROWS",
    "USED",
    "VALID",
    "AnyArray",
    "Bool",
    "Candidates",
    "ClassRows",
    "Code",
    "Column",
    "DurationError",
    "EvictionContext",
    "EvictionKind",
    "FilterInTurn",
    "FilterResult",
    "Filters",
    "Invalid",
    "Job",
    "JobRows",
    "LabelValues",
    "MayGo",
    "Node",
    "NodeRows",
    "PluginError",
    "PluginFault",
    "Pod",
    "PodGroup",
    "PodGroupPhase",
    "PodSpec",
    "PolicyError",
    "Question",
    "Queue",
    "QueueLimit",
    "Refusal",
    "Resource",
    "ResourceLimit",
    "ScoreInTurn",
    "Session",
    "SubJob",
    "Task",
    "TaskClass",
    "TaskFilter",
    "TaskRows",
    "TaskRun",
    "TaskScore",
    "TaskStatus",
    "Unfit",
    "UsageWindow",
    "Vote",
    "WeightedSum",
    "duration_or",
    "gather",
    "parse_duration",
    "plugin",
    "points",
    "read_only",
]
