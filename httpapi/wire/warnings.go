package wire

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"humanqa/domain"
)

// Unknown keys are ignored (decisions, "Unknown keys"), so a slip in one costs another
// test than was meant. The answer to a submission names the keys that look like slips.
// The known keys are those that the readers asked for, so that no list of them has to be
// kept.

const (
	// MaxWarnings and maxLookedAt bound the cost of a body full of unknown keys.
	MaxWarnings = 20
	maxLookedAt = 200
	// MaxSlip is the greatest length of a key that is taken for a slip, in bytes.
	MaxSlip = 64

	didYouMean = "; did you mean "
)

// Unused warns in the answer that a webhook's setting led to nothing.
func (r *Request) Unused(path string) {
	r.Notes = append(r.Notes, domain.Detail{
		Path: path, Message: "was not used: the project has no webhook; send webhookUrl with it",
	})
}

// OwnSecret warns in the answer that a project's call takes no secret, whether it names a
// webhook or not.
func (r *Request) OwnSecret(o Object) {
	if _, there := o.Field("webhookSecret"); there {
		r.Notes = append(r.Notes, domain.Detail{
			Path: "webhookSecret",
			Message: "was not used: the service makes the secret of a project, and the dashboard shows it; " +
				"POST /v1/hosted/test takes one of your own",
		})
	}
}

// Warned adds warnings to an answer.
func Warned(ans Answer, warnings []domain.Detail) (Answer, error) {
	if len(warnings) == 0 || ans.Status >= 300 {
		return ans, nil
	}
	raw, err := domain.EncodeJSON(warnings[:min(len(warnings), MaxWarnings)])
	if err != nil {
		return Answer{}, fmt.Errorf("encode warnings: %w", err)
	}
	object := ans.Body[:len(ans.Body)-1] // every such answer is an object with keys
	ans.Body = slices.Concat(object, []byte(`,"warnings":`), raw, []byte("}"))
	return ans, nil
}

// Submission is a call that submits tests, and the fields of its body.
type Submission struct {
	Name   string
	Fields []string
}

// Warnings name the unknown fields that look like slips, in the order of reading: a slip
// of a field that was looked for, or a field of one of the calls.
func (p *Problems) Warnings(calls []Submission) []domain.Detail {
	var found []domain.Detail
	looked := 0
	for _, o := range p.objects {
		for _, name := range slices.Sorted(maps.Keys(o.fields)) {
			if slices.Contains(*o.names, name) {
				continue
			}
			if looked++; looked > maxLookedAt || len(found) == MaxWarnings {
				return found
			}
			if slip := o.slip(name, calls); slip != "" {
				found = append(found, domain.Detail{Path: o.Path + name, Message: slip})
			}
		}
	}
	return found
}

// slip says which field an unknown key may have been meant for; empty when it looks like
// none of ours.
func (o Object) slip(name string, calls []Submission) string {
	if len(name) > MaxSlip {
		return ""
	}
	if i := slices.IndexFunc(*o.names, func(known string) bool { return Near(name, known) }); i >= 0 {
		return "is not known and was ignored" + didYouMean + (*o.names)[i] + "?"
	}
	if o.Path != "" && !slices.Contains(*o.names, "url") { // an object within a submission
		return ""
	}
	for _, s := range calls {
		if slices.Contains(s.Fields, name) {
			return "was ignored here: it is a field of " + s.Name
		}
	}
	return ""
}

// Near says that one name may be a slip of the other: another spelling of it, one letter
// apart, or two where known has six characters or more.
func Near(name, known string) bool {
	a, b := plain(name), plain(known)
	allowed := 2
	if utf8.RuneCountInString(b) < 6 {
		allowed = 1
	}
	return a == b || Distance(a, b, allowed) <= allowed
}

// plain is a name without the separators and capitals in which spellings differ.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == ' ' || c == '.' {
			return -1
		}
		return c
	}, strings.ToLower(name))
}

// Distance counts the letters to insert, remove, replace, or swap with their neighbour,
// to make one word of the other. It is more than limit when the lengths say so.
func Distance(s, t string, limit int) int {
	a, b := []rune(s), []rune(t)
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(row[j-1]+1, last[j]+1, replaced)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Clip shortens a text to that many characters.
func Clip(s string, limit int) string {
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit])
	}
	return s
}
