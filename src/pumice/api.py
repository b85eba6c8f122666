"""All that the author of a plugin imports.

    from pumice.api import F64, NodeRows, Session, TaskClass, plugin, points

What is here stays: a name goes only with a note in the guide of a release before. Tests of a plugin import
``pumice.testing`` besides. What rows and handles can be asked is docs/rows.md, what points ask docs/points.md.

``points``: the decorators of Volcano's language, one an extension point; those that other languages have too are among
them.
"""

from __future__ import annotations

from pumice.columns.column import Column
from pumice.columns.dtypes import CPU, F64, I32, I64, MEMORY, AnyArray, Bool
from pumice.columns.job_rows import JobRows
from pumice.columns.label_values import LabelValues
from pumice.columns.rows import Candidates, ClassRows, NodeRows, TaskRows
from pumice.columns.runs import TaskRun
from pumice.columns.views import Job, Node, Queue, SubJob, Task, TaskClass
from pumice.framework.cycle.session import Session
from pumice.framework.plugin.combine import MayGo, Vote
from pumice.framework.plugin.errors import PluginError, PluginFault, PolicyError
from pumice.framework.plugin.filter_result import Code, FilterResult, Invalid, Unfit
from pumice.framework.plugin.incremental import FilterInTurn, ScoreInTurn
from pumice.framework.plugin.plugin import plugin
from pumice.framework.plugin.point import JOBS, NOW, PODS, QUEUES, ROWS, SIGNATURE
from pumice.model.decisions import Refusal
from pumice.model.status import PodGroupPhase, TaskStatus
from pumice.model.usage import UsageWindow
from pumice.volcano import points
from pumice.volcano.eviction.context import EvictionContext, EvictionKind

__all__ = [
    "CPU",
    "F64",
    "I32",
    "I64",
    "JOBS",
    "MEMORY",
    "NOW",
    "PODS",
    "QUEUES",
    "ROWS",
    "SIGNATURE",
    "AnyArray",
    "Bool",
    "Candidates",
    "ClassRows",
    "Code",
    "Column",
    "EvictionContext",
    "EvictionKind",
    "FilterInTurn",
    "FilterResult",
    "Invalid",
    "Job",
    "JobRows",
    "LabelValues",
    "MayGo",
    "Node",
    "NodeRows",
    "PluginError",
    "PluginFault",
    "PodGroupPhase",
    "PolicyError",
    "Queue",
    "Refusal",
    "ScoreInTurn",
    "Session",
    "SubJob",
    "Task",
    "TaskClass",
    "TaskRows",
    "TaskRun",
    "TaskStatus",
    "Unfit",
    "UsageWindow",
    "Vote",
    "plugin",
    "points",
]
