"""Reading a conf file: text to policy, with the place of every problem."""

from __future__ import annotations

from pathlib import Path

import yaml

from pumice.framework.errors import PolicyError
from pumice.framework.policy import Policy, read_policy
from pumice.framework.registry import Registry

SIZE_MAX = 1 << 20


def policy_of(
    text: str, registry: Registry, *, where: str = "conf", strict: bool = True, unset_switches: bool = True
) -> Policy:
    """The policy a conf text stands for. Raises: PolicyError naming every problem."""
    if len(text) > SIZE_MAX:
        raise PolicyError([f"{where}: found {len(text)} characters, wanted at most {SIZE_MAX}"])
    try:
        conf = yaml.load(text, yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise PolicyError([f"{where}: not YAML: {' '.join(str(error).split())}"]) from None
    except RecursionError:
        raise PolicyError([f"{where}: not YAML that can be read: nested too deeply"]) from None
    try:
        return read_policy(conf, registry, strict=strict, unset_switches=unset_switches)
    except PolicyError as error:
        raise PolicyError(f"{where}{problem.removeprefix('conf')}" for problem in error.problems) from None


def load_policy(path: Path, registry: Registry, *, strict: bool = True) -> Policy:
    """The policy of a conf file. Raises: PolicyError, also when the file cannot be read."""
    try:
        with path.open("rb") as file:
            text = file.read(SIZE_MAX + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError([f"{path}: cannot be read: {error}"]) from None
    return policy_of(text, registry, where=str(path), strict=strict)
