// Package retention says how long evidence is kept, and holds the rules of holds. Accounts,
// projects and jobs share its rules. Everything here is pure: time comes in with the
// command.
package retention

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"humanqa/domain"
)

// The bounds of a setting, in days.
const (
	MinDays = 1
	MaxDays = 3650
)

// The names of the settings, as requests and events have them.
const (
	EvidenceDays   = "keepEvidenceDays"
	RecordingsDays = "keepRecordingsDays"
)

// Keep has the numbers of days after a job's end at which its evidence expires; nil: it
// is kept. A recording is evidence, too: the shorter of the two times holds for it.
type Keep struct {
	EvidenceDays   *int `json:"keepEvidenceDays,omitempty"`
	RecordingsDays *int `json:"keepRecordingsDays,omitempty"`
}

// Any says that by the settings some evidence expires.
func (k Keep) Any() bool { return k.EvidenceDays != nil || k.RecordingsDays != nil }

// Same compares the days, not the pointers.
func (k Keep) Same(o Keep) bool {
	return domain.Same(k.EvidenceDays, o.EvidenceDays) && domain.Same(k.RecordingsDays, o.RecordingsDays)
}

// Setting is a setting in a change.
type Setting = domain.Field[int]

// Change changes the settings that it mentions.
type Change struct{ Evidence, Recordings Setting }

// On gives the settings after the change.
func (c Change) On(k Keep) Keep {
	return Keep{EvidenceDays: c.Evidence.Or(k.EvidenceDays), RecordingsDays: c.Recordings.Or(k.RecordingsDays)}
}

// Wrong lists the settings out of bounds.
func (c Change) Wrong() (wrong domain.Wrong) {
	check := func(name string, days *int) {
		wrong.AddIf(days != nil && (*days < MinDays || *days > MaxDays), name,
			"must be %d to %d days; null keeps everything", MinDays, MaxDays)
	}
	check(EvidenceDays, c.Evidence.Value)
	check(RecordingsDays, c.Recordings.Value)
	return wrong
}

// The owners of settings and holds. A job has no setting.
const (
	OfAccount = "account"
	OfProject = "project"
	OfJob     = "job"
)

// Rule is the setting by which a piece of evidence expires.
type Rule struct {
	Setting string `json:"setting"`   // EvidenceDays, RecordingsDays, CheckerErased
	Of      string `json:"settingOf"` // OfAccount, OfProject; empty: no setting
	Days    int    `json:"days"`
}

// CheckerErased stands in the place of a setting where evidence expires because the
// checker who made it is erased.
const CheckerErased = "checkerErased"

// Words describes the rule for a reader.
func (r Rule) Words() string {
	if r.Setting == CheckerErased {
		return "the checker who made it was erased"
	}
	return fmt.Sprintf("%s of the %s: %d days", r.Setting, r.Of, r.Days)
}

// Shortest gives the rule with the fewest days; false without one.
func Shortest(account, project Keep, recording bool) (rule Rule, limited bool) {
	var rules []Rule
	add := func(setting, of string, days *int) {
		if days != nil {
			rules = append(rules, Rule{setting, of, *days})
		}
	}
	if recording {
		add(RecordingsDays, OfProject, project.RecordingsDays)
		add(RecordingsDays, OfAccount, account.RecordingsDays)
	}
	add(EvidenceDays, OfProject, project.EvidenceDays)
	add(EvidenceDays, OfAccount, account.EvidenceDays)
	if len(rules) == 0 {
		return Rule{}, false
	}
	return slices.MinFunc(rules, func(a, b Rule) int { return a.Days - b.Days }), true
}

// Due is when evidence of a job that ended at that time expires by the rule.
func (r Rule) Due(ended time.Time) time.Time {
	return ended.Add(time.Duration(r.Days) * 24 * time.Hour)
}

// Hold keeps evidence whatever the settings say.
type Hold struct {
	Reason string
	// Operator says that an operator placed the hold: only operators release it.
	Operator bool
	At       time.Time
}

// HoldPlaced is the body of the events that place a hold.
type HoldPlaced struct {
	Reason   string    `json:"reason"`
	Operator bool      `json:"operator,omitempty"`
	At       time.Time `json:"at"`
}

// HoldReleased is the body of the events that release a hold.
type HoldReleased struct {
	Reason   string    `json:"reason"`
	Operator bool      `json:"operator,omitempty"`
	At       time.Time `json:"at"`
}

// Hold gives the hold that was placed.
func (p HoldPlaced) Hold() *Hold { return &Hold{Reason: p.Reason, Operator: p.Operator, At: p.At} }

// MaxReason bounds a reason, in characters.
const MaxReason = 500

// Order places a hold, or releases the one that is in place.
type Order struct {
	HoldPlaced // or of the release
	Release    bool
}

// Decide carries the order out by an event of its subject. A repeat, and a release
// without a hold, give no event. An operator's hold replaces a client's hold.
func (o Order) Decide(
	now *Hold, placed func(HoldPlaced) domain.Event, released func(HoldReleased) domain.Event,
) ([]domain.Event, error) {
	if err := checkReason(&o.Reason); err != nil {
		return nil, err
	}
	switch {
	case o.Release && now == nil:
		return nil, nil
	case o.Release && now.Operator && !o.Operator:
		return nil, domain.Forbidden("an operator of the service placed the hold").WithHint("ask the operator to release it")
	case o.Release:
		return []domain.Event{released(HoldReleased(o.HoldPlaced))}, nil
	case now == nil, o.Operator && !now.Operator:
		return []domain.Event{placed(o.HoldPlaced)}, nil
	case now.Reason == o.Reason && now.Operator == o.Operator:
		return nil, nil
	}
	return nil, domain.Conflict("a hold is in place since %s", now.At.UTC().Format(time.RFC3339)).
		WithHint("release it before you place another")
}

func checkReason(reason *string) error {
	*reason = strings.TrimSpace(*reason)
	var problem string
	switch {
	case *reason == "":
		problem = "must not be blank"
	case utf8.RuneCountInString(*reason) > MaxReason:
		problem = fmt.Sprintf("must have at most %d characters", MaxReason)
	case strings.ContainsFunc(*reason, unicode.IsControl):
		problem = "must be one line, without control characters"
	default:
		return nil
	}
	return domain.InvalidAt("reason", "%s", problem)
}

// Gone is a piece of evidence that is kept no longer.
type Gone struct {
	ID          string
	Reference   string // as events hold it
	Name        string // of the file
	ContentType string
	Size        int64 // bytes
	Recording   bool
	At          time.Time // by the account's clock
	Why         string    // the rule, in words
}

// Words is the text in the place of a link to the piece.
func (g Gone) Words() string {
	return fmt.Sprintf("no longer kept since %s: %s, %d bytes", g.At.UTC().Format(time.DateOnly), g.Name, g.Size)
}

// Words describes the settings for a reader.
func (k Keep) Words() string {
	say := func(days *int) string {
		if days == nil {
			return "for good"
		}
		return fmt.Sprintf("%d days", *days)
	}
	if k.RecordingsDays == nil {
		return "evidence " + say(k.EvidenceDays)
	}
	return "evidence " + say(k.EvidenceDays) + ", recordings " + say(k.RecordingsDays)
}
