"""The order of the gallery: a story in three verbs."""

STORY = (
    "ten_models",
    "hulls",
    "several_attributes",
    "weights",
    "sensitivity",
    "elicited_weight",
    "bands",
    "winners_curse",
    "fairstacks",
    "score_and_decision",
    "decision_path",
    "diagnostics",
    "mixture",
    "generalization",
)


def story(filename: str) -> tuple[int, str]:
    """Return the place of an example; those that are not part of the story come last."""
    name = filename.removeprefix("plot_").removesuffix(".py")
    return (STORY.index(name) if name in STORY else len(STORY), name)
