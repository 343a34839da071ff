// Example pairs and an example search. Each is a state of the page, as in a link.

export const EXAMPLES = [
  { name: "a negation", state: { a: "The coffee here is not good.", b: "The coffee here is good." } },
  { name: "a paraphrase", state: { a: "The committee put the decision off until spring.", b: "They will decide next year." } },
  { name: "an antonym", state: { a: "Prices rose sharply in March.", b: "In March prices fell sharply." } },
  { name: "two meanings", state: { a: "He sat down on the bank of the river.", b: "She opened an account at the bank." } },
  {
    name: "a search",
    state: {
      kind: "search",
      query: "how long does the battery last",
      passages: [
        "The battery can be replaced without tools.",
        "It runs for nine hours on one charge.",
        "Most people keep this phone for the last two years of its guarantee.",
        "A longer cable is sold separately.",
        "The laptop does not last a working day away from a socket.",
      ].join("\n"),
    },
  },
];
