"""Faults in SPATL: its selections, its agent, its gradient control, and newcomers."""

from __future__ import annotations

from mutants.fault import Fault

SELECTING = "fedsim/learning/executors/selecting.py"
CONVOLUTIONS = "fedsim/models/convolutions.py"
CONTROL = "fedsim/learning/objectives/extractor_control.py"
SERVER = "fedsim/learning/rules/salient_mean.py"
EXCHANGE = "fedsim/protocols/exchanges/salient_filters.py"
AGENT = "fedsim/learning/agent/"
CHOSEN = "fedsim/learning/selections/selection.py"
GNN = "fedsim/learning/selections/gnn_ppo.py"
HELD = "fedsim/data/held_back.py"
NEWCOMERS = "fedsim/protocols/newcomers.py"
LOOP = ("tests/laws/test_spatl_learns_like_a_plain_loop.py",)
SELECTIONS = ("tests/learning/test_selections.py",)
OF_AGENT = ("tests/learning/test_agent.py",)
CLOCK = ("tests/protocols/test_salient_filters_on_the_clock.py",)
SHAPES = ("tests/models/test_convolutions.py",)
JOIN = ("tests/protocols/test_newcomers.py",)
RESUMED = ("tests/experiment/test_resume_of_selections.py",)
MEASURED = ("tests/laws/test_measured_filters.py",)

FAULTS = (
    Fault(
        "what is not sent is lost",
        SELECTING,
        "torch.where(keep, sent[name], received[name])",
        "torch.where(keep, sent[name], torch.zeros_like(sent[name]))",
        SELECTIONS,
    ),
    Fault(
        "what is not sent is sent all the same",
        SELECTING,
        "torch.where(keep, sent[name], received[name])",
        "sent[name].clone()",
        SELECTIONS,
    ),
    Fault(
        "the change of a control that nobody can know is known",
        SELECTING,
        "for name in about.objective.rebuilt:",
        "for name in ():",
        LOOP,
    ),
    Fault(
        "normalisation does not go along with its filter",
        CONVOLUTIONS,
        'self.convolutions.append(replace(one, states=one.states + _rows(f"{stem}{layer.name}", layer)))',
        "self.convolutions.append(replace(one, states=one.states))",
        SHAPES,
    ),
    Fault(
        "of equally strong filters the last one is kept",
        CONVOLUTIONS,
        'mask[np.argsort(-norms, kind="stable")[:number]] = True',
        'mask[np.argsort(norms, kind="stable")[len(norms) - number :]] = True',
        SELECTIONS,
    ),
    Fault(
        "a convolution may keep nothing",
        CONVOLUTIONS,
        "return max(filters - round((1 - share) * filters), 1)",
        "return filters - round((1 - share) * filters)",
        SELECTIONS,
    ),
    Fault(
        "a shortcut brings nothing back",
        CONVOLUTIONS,
        "found[: len(brought)] |= brought",
        "pass",
        SHAPES,
    ),
    Fault(
        "work is scaled by a convolution's own filters alone",
        CONVOLUTIONS,
        "one.flops * share * (1.0 if one.source is None else shares[one.source])",
        "one.flops * share",
        SHAPES,
    ),
    Fault("filters have no numbers on the wire", CHOSEN, "INDEX_BYTES * sum(kept)", "0", SELECTIONS),
    Fault(
        "the classifier's gradients are corrected, too",
        CONTROL,
        "if not name.startswith(PREFIX):",
        "if False:",
        LOOP,
    ),
    Fault(
        "the authors' way is divided by the weight of gradients",
        CONTROL,
        "return float(given.steps) if self.moves else super().weight_of_gradients(given)",
        "return super().weight_of_gradients(given)",
        LOOP,
    ),
    Fault(
        "weights are moved by the correction whatever the parity",
        "fedsim/learning/executors/plain.py",
        "if objective.moves:",
        "if True:",
        LOOP,
    ),
    Fault(
        "a change that is rebuilt takes bytes",
        CONTROL,
        "return 0.0 if name in self.rebuilt else ",
        "return ",
        CLOCK,
    ),
    Fault(
        "every denominator is that of the clients",
        SERVER,
        'if self.denominator == "clients" or KEPT not in updates[0].models:',
        "if True:",
        LOOP,
    ),
    Fault(
        "a private predictor is sent",
        EXCHANGE,
        'return EXTRACTOR if self.classifier == "private" else None',
        "return None",
        CLOCK,
    ),
    Fault(
        "an agent's work takes no time",
        "fedsim/protocols/task.py",
        "effort += rated / FORWARDS_PER_TRAINING_STEP",
        "pass",
        CLOCK,
    ),
    Fault(
        "an agent learns in every round",
        GNN,
        "return round_number <= self.finetune_rounds",
        "return True",
        SELECTIONS,
    ),
    Fault(
        "an agent forgets what it has learned",
        GNN,
        "kept = asked.state.get(AGENT, {})",
        "kept = {}",
        SELECTIONS,
    ),
    Fault(
        "whichever graph network comes with fedsim is the same to the store",
        EXCHANGE,
        "selection.basis)",
        '"")',
        RESUMED,
    ),
    Fault(
        "the last try is taken, and not the best",
        GNN,
        "found = max(tried, key=_rank)",
        "found = tried[-1]",
        SELECTIONS,
    ),
    Fault("nothing is clipped", AGENT + "ppo.py", "ratios.clamp(1 - CLIP, 1 + CLIP)", "ratios", OF_AGENT),
    Fault(
        "returns go over the end of an episode",
        AGENT + "ppo.py",
        "GAMMA * (0.0 if step.last else so_far)",
        "GAMMA * so_far",
        OF_AGENT,
    ),
    Fault("the critic learns from the actor's gain", AGENT + "ppo.py", "values.detach()", "values", OF_AGENT),
    Fault(
        "shares do not add up over an episode",
        AGENT + "search.py",
        "np.clip(shares * (1 - action",
        "np.clip(1.0 * (1 - action",
        OF_AGENT,
    ),
    Fault(
        "a convolution does not gate what it takes",
        AGENT + "network.py",
        "gated = (self._by_convolution @ state.maps)[..., 1:, :] * convolutions",
        "gated = (self._by_convolution @ state.maps)[..., 1:, :]",
        OF_AGENT,
    ),
    Fault(
        "edges are not divided by what comes in",
        AGENT + "network.py",
        "return by_convolution * scale, beside * scale",
        "return by_convolution, beside",
        OF_AGENT,
    ),
    Fault(
        "what is held back is trained on",
        HELD,
        "tuple(np.setdiff1d(own, some) for own, some in zip(own_ids, held, strict=True))",
        "own_ids",
        LOOP,
    ),
    Fault(
        "an agent is rated on tests",
        SELECTING,
        ".held_back_ids",
        ".client_test_ids",
        MEASURED,
    ),
    Fault(
        "newcomers are asked in rounds",
        "fedsim/protocols/world.py",
        "return self.clients[: len(self.clients) - self.newcomers] if self.newcomers else self.clients",
        "return self.clients",
        JOIN,
    ),
    Fault(
        "newcomers begin with the last classifier",
        NEWCOMERS,
        "classifier = {part: handle for part, handle in begin.items() if part == CLASSIFIER}",
        "classifier = {part: handle for part, handle in world.loop.model.items() if part == CLASSIFIER}",
        JOIN,
    ),
    Fault(
        "a newcomer's classifier takes a whole training's time",
        NEWCOMERS,
        "effort = flops / table.training_flops_per_sample",
        "pass",
        JOIN,
    ),
)
