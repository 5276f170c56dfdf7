package httpapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"humanqa/domain"
)

// Unknown keys are ignored (decisions, "Unknown keys"), so a slip in one costs
// a test that is not the one that was meant. The answer to a submission names
// what looks like a slip. It is found out from what the readers asked for, so
// that no list of known keys has to be kept.

const (
	// maxWarnings and maxLookedAt bound what a body full of unknown keys costs.
	maxWarnings = 20
	maxLookedAt = 200
	// maxSlip is how long a key may be to be taken for a slip, in bytes.
	maxSlip = 64

	didYouMean = "; did you mean "
)

// submission is a call that submits tests, and the fields of its body.
type submission struct {
	call   string
	fields []string
}

// submissionCalls are in the order in which the calls are named to who sent another
// call's field. A reader of an empty body tells which fields it looks for.
var submissionCalls = sync.OnceValue(func() (all []submission) {
	a, r := new(API), new(request)
	for _, s := range []struct {
		call string
		read func(object)
	}{
		{"POST /v1/jobs", func(o object) { readSubmit(o) }},
		{"POST /v1/hosted/test", func(o object) { a.readHostedTest(r, o) }},
		{"POST /v1/hosted/sessions", func(o object) { a.readSession(r, o) }},
		{"POST /v1/jobs/bulk", func(o object) { readBulk(o) }},
		{"POST /v1/hooks/deploy/{token}", func(o object) { readDeploy(o) }},
	} {
		o := parseObject([]byte("{}"), new(problems))
		s.read(o)
		all = append(all, submission{s.call, *o.names})
	}
	return all
})

// unused warns in the answer that a webhook's setting led to nothing.
func (r *request) unused(path string) {
	r.notes = append(r.notes, domain.Detail{
		Path: path, Message: "was not used: the project has no webhook; send webhookUrl with it",
	})
}

// warned adds warnings to an answer.
func warned(ans answer, warnings []domain.Detail) (answer, error) {
	if len(warnings) == 0 || ans.status >= 300 {
		return ans, nil
	}
	raw, err := encode(warnings[:min(len(warnings), maxWarnings)])
	if err != nil {
		return answer{}, fmt.Errorf("encode warnings: %w", err)
	}
	object := ans.body[:len(ans.body)-1] // every such answer is an object with keys
	ans.body = slices.Concat(object, []byte(`,"warnings":`), raw, []byte("}"))
	return ans, nil
}

// warnings are what looks like a slip in what was read, in its order.
func (p *problems) warnings() []domain.Detail {
	var found []domain.Detail
	looked := 0
	for _, o := range p.objects {
		for _, name := range slices.Sorted(maps.Keys(o.fields)) {
			if slices.Contains(*o.names, name) {
				continue
			}
			if looked++; looked > maxLookedAt || len(found) == maxWarnings {
				return found
			}
			if slip := o.slip(name); slip != "" {
				found = append(found, domain.Detail{Path: o.path + name, Message: slip})
			}
		}
	}
	return found
}

// slip says what an unknown key may have been meant for; nothing when it looks
// like nothing of ours.
func (o object) slip(name string) string {
	if len(name) > maxSlip {
		return ""
	}
	if i := slices.IndexFunc(*o.names, func(known string) bool { return near(name, known) }); i >= 0 {
		return "is not known and was ignored" + didYouMean + (*o.names)[i] + "?"
	}
	if o.path != "" && !slices.Contains(*o.names, "url") { // an object within a submission
		return ""
	}
	for _, s := range submissionCalls() {
		if slices.Contains(s.fields, name) {
			return "was ignored here: it is a field of " + s.call
		}
	}
	return ""
}

// near says that one name may be a slip of the other: another spelling of it, or
// one or two letters apart, as far as it is long enough for that.
func near(name, known string) bool {
	a, b := plain(name), plain(known)
	allowed := 2
	if utf8.RuneCountInString(b) < 6 {
		allowed = 1
	}
	return a == b || distance(a, b, allowed) <= allowed
}

// plain is a name without what spellings differ in.
func plain(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == ' ' || c == '.' {
			return -1
		}
		return c
	}, strings.ToLower(name))
}

// distance counts the letters that are to be put in, taken out, replaced, or
// swapped with their neighbour to make one word of the other; more than limit
// when the lengths say so.
func distance(s, t string, limit int) int {
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

// clip shortens a text to that many characters.
func clip(s string, limit int) string {
	if runes := []rune(s); len(runes) > limit {
		return string(runes[:limit])
	}
	return s
}
