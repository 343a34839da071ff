"""English words and sentences for the studies of negation, adjectives and lexical bias."""

from __future__ import annotations

CUES = frozenset("cannot neither never no nobody none nor not nothing nowhere n't without".split())
FUNCTION = frozenset(
    """
    a about above across after again against all also am among an and another any are as at be because been before
    behind being below between both but by can could did do does doing down during each either else even every few for
    from further had has have having he her here hers him his how i if in into is it its itself just may me might more
    most much must my now of off on once one only or other our out over own per rather same shall she should since so
    some still such than that the their them then there these they this those though through to too toward under until
    up upon us very was we were what when where which while who whom whose why will with within would yet you your
    """.split()
)
"""Closed-class words, without the cues of negation."""
FUNCTION_TAGS = frozenset("ADP AUX CCONJ DET PART PRON SCONJ".split())
_WHOLE = {"can't": "can", "won't": "will", "shan't": "shall", "cannot": "can", "ain't": "is"}


def is_cue(word: str) -> bool:
    """Whether a word negates.

    Example:
        >>> is_cue("Not"), is_cue("isn’t"), is_cue("knot")
        (True, True, False)
    """
    plain = word.lower().replace("’", "'")
    return plain in CUES or plain.endswith("n't")


def without_cue(word: str) -> str:
    """A word without its negation; "" for a word that is a negation, and for any other word.

    Example:
        >>> without_cue("isn't"), without_cue("won't"), without_cue("not")
        ('is', 'will', '')
    """
    plain = word.lower().replace("’", "'")
    if plain in _WHOLE:
        return _WHOLE[plain]
    return word[:-3] if plain.endswith("n't") else ""


NEGATING = ("not", "never")
PADDING = ("also", "still", "now")
"""Words that can stand in place of a negation and hardly change the meaning."""
SLOTS = (
    "The film was {} good.",
    "The coffee is {} cold.",
    "The door was {} locked.",
    "The children were {} asleep.",
    "The answer is {} correct.",
    "The bridge was {} safe.",
    "The results are {} reliable.",
    "The shop is {} open on Sundays.",
    "The patient was {} awake.",
    "The contract is {} valid.",
    "The water is {} clean.",
    "The meeting was {} useful.",
    "The lights were {} on.",
    "The player is {} injured.",
    "The software is {} free.",
    "The road was {} blocked.",
    "The minister is {} guilty.",
    "The data are {} public.",
    "The seats were {} comfortable.",
    "The witness was {} honest.",
    "She can {} swim.",
    "He will {} sell the house.",
    "They have {} seen the report.",
    "We could {} find the key.",
    "The company will {} raise prices.",
    "The dog has {} eaten.",
    "The committee has {} approved the plan.",
    "The model can {} explain its score.",
    "The government will {} sign the treaty.",
    "The students have {} passed the exam.",
    "The drug can {} cure the disease.",
    "The train will {} stop here.",
    "The police have {} arrested the man.",
    "You should {} drink this water.",
    "The bank will {} lend us money.",
    "The team has {} won the match.",
    "The court has {} upheld the ruling.",
    "Visitors may {} take photographs.",
    "The machine can {} run at night.",
    "My brother will {} join the army.",
)
"""Sentences with a place for a word that negates, or for another one."""

TRIPLES = tuple(
    tuple(line.split())
    for line in """
    house big large small
    child happy glad sad
    train fast quick slow
    family rich wealthy poor
    student smart clever stupid
    question easy simple difficult
    room quiet silent noisy
    kitchen clean spotless dirty
    soldier brave courageous cowardly
    teacher angry furious calm
    castle old ancient new
    garden beautiful gorgeous ugly
    hotel cheap inexpensive expensive
    wrestler strong powerful weak
    towel wet damp dry
    worker tired exhausted rested
    patient sick ill healthy
    bridge safe secure dangerous
    statement true correct false
    seat empty vacant occupied
    river wide broad narrow
    dancer thin slim fat
    lake cold chilly warm
    screen bright luminous dark
    waiter polite courteous rude
    donor generous charitable stingy
    witness honest truthful dishonest
    singer famous renowned unknown
    lecture boring dull exciting
    noise strange odd normal
    design modern contemporary outdated
    surface rough coarse smooth
    suitcase heavy weighty light
    defendant guilty culpable innocent
    winner lucky fortunate unlucky
    visa necessary essential unnecessary
    course optional voluntary mandatory
    trade legal lawful illegal
    bird rare uncommon common
    thought deep profound shallow
    cable flexible pliable rigid
    neighbour friendly amicable hostile
    climate gentle mild harsh
    actor humble modest arrogant
    clerk lazy idle diligent
    knot loose slack tight
    servant loyal faithful disloyal
    nurse patient tolerant impatient
    job permanent lasting temporary
    letter private confidential public
    meat raw uncooked cooked
    peach ripe mature unripe
    injury serious grave trivial
    lemon sour tart sweet
    path steep sheer gradual
    mule stubborn obstinate obedient
    insect tiny minute huge
    scar visible apparent invisible
    judge wise sensible foolish
    address wrong incorrect right
    knife sharp keen blunt
    rope sturdy robust fragile
    speech brief concise lengthy
    crowd large enormous tiny
    village remote distant nearby
    """.strip().splitlines()
)
"""A noun, an adjective, one of the same meaning and one of the opposite."""
FRAMES = ("The {noun} was {adjective}.", "We talked about the {adjective} {noun} yesterday.")
PLAIN_FRAMES = ("It was {adjective}.", "They said that it was {adjective}.")
"""Frames for adjectives without a noun."""
