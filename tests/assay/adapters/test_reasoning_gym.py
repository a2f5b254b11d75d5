"""reasoning-gym, the real package: its tasks here, and who is right where its scorer disagrees."""

import inspect
import json
import pickle
import re

import pytest

from assay import make
from assay.adapters import from_reasoning_gym, register_reasoning_gym, rulings
from assay.adapters.reasoning_gym_judges import PackageScorer, SameJson, SameLines
from assay.envs import TRLSpec, check
from assay.verifiers import Verifier

pytestmark = pytest.mark.filterwarnings("ignore")  # of the package's own dependencies
reasoning_gym = pytest.importorskip("reasoning_gym")

JUDGED = [name for name, ruling in rulings().items() if ruling.who != "refused"]
SLOW = {  # to draw, or to score there
    "puzzle24",
    "rearc",
    "arc_agi",
    "zebra_puzzles",
    "futoshiki",
    "knight_swap",
    "quantum_lock",
    "intermediate_integration",
    "sudoku",
}
TRICKS = ("x", "I do not know", "0", "nan", "[]", "True" * 40)
LARGE = ("1e999999999", "9" * 5000, "[" * 5000)  # on some of which the package hangs


def theirs(dataset, answer, entry):
    """Whether the package pays in full; a scorer that raises pays nothing."""
    try:
        return float(dataset.score_answer(answer, entry)) >= 1
    except Exception:
        return False


def test_every_data_set_of_the_package_is_ruled_on():
    assert set(rulings()) == set(reasoning_gym.factory.DATASETS)


def test_no_scorer_that_evaluates_replies_is_asked():
    """A scorer that names eval, exec or a parser of sympy's is only asked where it was read."""
    harmless = {"number_sorting"}  # evaluates its own answer, never the reply
    word = re.compile(r"\b(eval|exec|parse_expr|sympify|literal_eval)\(")
    for name in JUDGED:
        if rulings()[name].who == "package" and name not in harmless:
            scorer = reasoning_gym.factory.DATASETS[name][0].score_answer
            assert not word.search(inspect.getsource(scorer)), name


# What the package pays and we do not, or the other way round; every row was looked at.
WE_ARE_RIGHT = {
    ("coin_flip", "0"): "a text that is the beginning of the right one",
    ("complex_arithmetic", "nan"): "min(1.0, nan) is 1.0",
    **{("game_of_life_halting", t): "bool() of any text" for t in TRICKS},
}


@pytest.mark.parametrize("name", [n for n in JUDGED if n not in SLOW and n != "coin_flip"])
def test_scores_agree_with_the_packages(name):
    """Known answers, another entry's, and texts that answer nothing, judged by both."""
    env = from_reasoning_gym(name, seed=7, size=2)
    dataset = env.source.dataset
    for row in range(2):
        task, entry = env.task(row), dataset[row]
        if env.rubric.check_reference(task.reference) is not None:
            continue
        other = dataset[(row + 1) % 2]["answer"]
        tried = list(TRICKS) + [a for a in (entry["answer"], other) if isinstance(a, str)]
        for answer in tried:
            if "Integral(" in answer or (name == "codeio" and answer == entry["answer"]):
                continue
            verdict = env.rubric.verify(f"<answer>{answer}</answer>", task.reference)
            if (name, answer) in WE_ARE_RIGHT or name == "game_of_life_halting":
                assert (verdict.score == 1.0) is (answer == entry["answer"])
            else:
                shown = (name, answer, verdict.reason)
                assert (verdict.score == 1.0) is theirs(dataset, answer.strip(), entry), shown


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in JUDGED if n not in SLOW])
def test_large_replies_earn_nothing(name):
    env = from_reasoning_gym(name, seed=7, size=1)
    reference = env.task(0).reference
    if env.rubric.check_reference(reference) is None:
        assert [v.score for v in env.rubric.verify_many(LARGE, [reference] * 3)] == [0.0] * 3


def test_where_the_package_pays_for_nothing():
    """Its own scorer, and ours beside it: the list that docs/neighbours.md gives."""
    cases = [
        ("coin_flip", "0"),
        ("complex_arithmetic", "nan"),
        ("game_of_life_halting", "no"),
        ("gsm_symbolic", "{answer} if not 7"),
        ("puzzle24", "2 + 9 + 6 + 7"),
    ]
    for name, answer in cases:
        env = from_reasoning_gym(name, seed=11, size=1)
        entry = env.source.dataset[0]
        answer = answer.format(answer=entry["answer"])
        assert theirs(env.source.dataset, answer, entry), name
        verdict = env.rubric.verify(f"<answer>{answer}</answer>", env.task(0).reference)
        assert verdict.score == 0.0, name


def test_the_question_given_back_is_no_integral():
    env = from_reasoning_gym("intermediate_integration", seed=11, size=25)
    entries = map(env.source.dataset.__getitem__, range(25))
    i, entry = next((i, e) for i, e in enumerate(entries) if "Integral(" in e["answer"])
    assert theirs(env.source.dataset, entry["answer"], entry)
    assert env.rubric.verify(entry["answer"], env.task(i).reference).score == 0.0
    assert env.task(i).solution is None


@pytest.mark.parametrize("name", ["basic_arithmetic", "countdown", "sudoku", "tower_of_hanoi"])
def test_an_environment_keeps_the_contract(name):
    check(from_reasoning_gym(name, size=30), tasks=4)


def test_code_in_a_reply_is_not_run(tmp_path):
    gone = tmp_path / "here"
    gone.write_text("")
    attack = f"[__import__('os').remove({str(gone)!r})]"
    for name in ("countdown", "puzzle24", "binary_matrix", "string_insertion", "n_queens"):
        env = from_reasoning_gym(name, size=1)
        assert env.rubric.verify(f"<answer>{attack}</answer>", env.task(0).reference).score == 0.0
    assert gone.exists()
    dataset = reasoning_gym.create_dataset("binary_matrix", seed=0, size=1)
    dataset.score_answer(attack, dataset[0])
    assert not gone.exists(), "the package's own scorer runs it"


def test_what_nobody_can_judge_is_refused_with_the_reason():
    with pytest.raises(ValueError, match="R999999999"):
        from_reasoning_gym("rubiks_cube")
    with pytest.raises(ValueError, match=r"assay\.envs\.Mixed"):
        register_reasoning_gym("composite")


def test_splits_share_no_question_whatever_the_seeds():
    """The package's seeds 42 and 43 share all entries but one; the splits of both share none."""
    drawn = {
        (split, seed): {env.task(i).text for i in range(env.source.size)}
        for split in ("train", "test")
        for seed in (42, 43)
        for env in [from_reasoning_gym("leg_counting", seed=seed, size=100, split=split)]
    }
    assert len(drawn["train", 42] & drawn["train", 43]) > 80
    assert not (drawn["train", 42] | drawn["train", 43]) & (drawn["test", 42] | drawn["test", 43])


def test_ids_reach_every_door():
    env = make("assay.adapters.reasoning_gym_ids:reasoning_gym/gcd-v0", seed=3, size=9)
    assert env.name == "reasoning_gym/gcd-v0"
    own = reasoning_gym.create_dataset("gcd", seed=3, size=9)[4]
    assert env.task(4).text.startswith(own["question"].strip())
    env.reset(options={"task": 4})
    assert env.step(f"<answer>{own['answer']}</answer>")[1] == 1.0
    spec = TRLSpec("reasoning_gym/gcd-v0", env_kwargs={"size": 9})
    assert pickle.loads(pickle.dumps(spec)) == spec
    hard = make("reasoning_gym/gcd-v0", size=2, config={"min_numbers": 4, "max_numbers": 4})
    assert hard.task(0).text.count(",") >= 3


def test_a_scorer_is_the_same_in_another_process():
    scorer = PackageScorer("jugs", seed=2, size=3)
    again = pickle.loads(pickle.dumps(scorer))
    assert again == scorer == Verifier.from_json(json.loads(json.dumps(scorer.to_json())))
    entry = scorer.dataset[1]
    reference = {"index": 1, "answer": entry["answer"]}
    assert again.verify(entry["answer"], reference).score == 1.0
    assert again.verify("[]", reference).score == 0.0


def test_a_share_is_handed_on_only_where_it_is_asked_for():
    env = from_reasoning_gym("tower_of_hanoi", seed=1, size=1)
    first = env.source.dataset[0]["answer"].splitlines()[0]
    assert env.rubric.verify(first, env.task(0).reference).score == 0.0
    env = from_reasoning_gym("tower_of_hanoi", seed=1, size=1, partial=True)
    assert env.rubric.verify(first, env.task(0).reference).score == 0.05


def test_a_reply_cannot_buy_itself_no_score():
    """prime_factorization raises on words; that is the reply's doing."""
    env = from_reasoning_gym("prime_factorization", size=1)
    verdict = env.rubric.verify("<answer>two × three</answer>", env.task(0).reference)
    assert (verdict.score, verdict.status.value) == (0.0, "unparseable")


def test_lines_and_json_are_compared_as_said():
    assert SameLines().verify("<answer>1  2\n\n3 4 </answer>", "1 2\n3 4").score == 1.0
    assert SameLines().verify("1 2 3 4", "1 2\n3 4").score == 0.0
    assert SameLines(case=False, gaps=False).verify("C l o", "CLO").score == 1.0
    assert SameJson().verify('{"b": 2.0,\n "a": [1]}', '{"a":[1],"b":2}').score == 1.0
    assert SameJson().verify("[true]", "[1]").score == 0.0
    assert SameJson().verify("[" * 5000, "[1]").score == 0.0
