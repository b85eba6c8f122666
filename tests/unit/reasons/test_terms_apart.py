"""Terms of pods on nodes are found by the labels that they look at, as if each were matched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pumice.model.pod import LabelSelector, PodAffinityTerm, Requirement
from pumice.model.selectors import matches
from pumice.reasons.terms_apart import TermsApart

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xyz"))
VALUES = st.lists(st.sampled_from("xyz"), min_size=1, max_size=2).map(tuple)
REQUIREMENTS = st.builds(Requirement, st.sampled_from("ab"), st.sampled_from(["In", "NotIn"]), VALUES) | st.builds(
    Requirement, st.sampled_from("ab"), st.sampled_from(["Exists", "DoesNotExist"]), st.just(())
)
SELECTORS = st.none() | st.builds(LabelSelector, st.lists(REQUIREMENTS, max_size=3).map(tuple))


@given(st.lists(SELECTORS, max_size=6), LABELS)
def test_the_selectors_that_take_a_pod_are_found(selectors: list[LabelSelector | None], labels: dict[str, str]) -> None:
    terms = TermsApart(PodAffinityTerm("host", each, ("ns",)) for each in selectors)
    found = [terms.selectors[number] for number in terms.about(labels)]
    assert found == [each for each in dict.fromkeys(selectors) if each is not None and matches(each, labels)]
