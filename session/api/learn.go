package api

import (
	"context"
	"iter"
	"net/http"
)

// PolicyLearn asks which rules answers in recorded sessions suggest.
type PolicyLearn struct {
	PastOf
	Times int `json:"times,omitempty"` // that the same answer was given, at least; 0 is 2
}

// PolicyLearned is the rules that answers suggest.
type PolicyLearned struct {
	Sessions  int            `json:"sessions"` // that were gone through
	Answers   int            `json:"answers"`  // of persons, on commands and connections
	Proposals []LearnedRule  `json:"proposals"`
	Left      []LearnedLeave `json:"left,omitempty"` // what was answered often enough, and no rule is proposed for
}

// LearnedRule is a proposed rule, and why.
type LearnedRule struct {
	Rule
	Why      string `json:"why"`      // in a sentence
	Times    int    `json:"times"`    // that it was answered so
	Sessions int    `json:"sessions"` // in so many
	Newest   Past   `json:"newest"`
	// Of is what was answered, where the rule is wider than that.
	Of []string `json:"of,omitempty"`
}

// LearnedLeave is what no rule is proposed for.
type LearnedLeave struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// LearnPolicy proposes rules from what persons answered in recorded sessions, and yields
// how far that is, last what came of it.
func (c *Client) LearnPolicy(ctx context.Context, r PolicyLearn) iter.Seq2[PastTold[PolicyLearned], error] {
	return stream[PastTold[PolicyLearned]](ctx, c, http.MethodPost, "/v1/policy/learn", r, "what can be learned")
}

// PolicyAdd puts rules into files: For says which, always is the person's own.
type PolicyAdd struct {
	Project string `json:"project,omitempty"` // its folder, for rules of the project; absolute
	Remark  string `json:"remark,omitempty"`  // that is put behind each; one line
	Rules   []Rule `json:"rules"`
}

// AddToPolicy puts rules into the files that they are for, keeping all else in these. It
// answers with the rules as they were put there.
func (c *Client) AddToPolicy(ctx context.Context, add PolicyAdd) (PolicyAdd, error) {
	return fetch[PolicyAdd](ctx, c, http.MethodPost, "/v1/policy/add", add)
}
