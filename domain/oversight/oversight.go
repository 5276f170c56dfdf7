// Package oversight records the acts of operators. Every act is a fact with operator,
// act, subject and reason, before it has any other effect. Each operator has one
// stream. Everything here is pure.
package oversight

import (
	"slices"
	"strings"
	"unicode"

	"humanqa/domain"
)

// Act is a kind of act.
type Act string

// The acts.
const (
	Look          Act = "look" // into a client's data; the client's people see it
	GrantCredits  Act = "grant_credits"
	Suspend       Act = "suspend_account"
	Reinstate     Act = "reinstate_account"
	ChoosePool    Act = "choose_pool"
	Invite        Act = "invite_person"
	NewLink       Act = "new_link"
	GrantRole     Act = "grant_role"
	RevokeRole    Act = "revoke_role"
	Disable       Act = "disable_person"
	CreatePool    Act = "create_pool"
	AddChecker    Act = "add_to_pool"
	RemoveChecker Act = "remove_from_pool"
	Rebuild       Act = "rebuild_projection"
	Retry         Act = "retry_projection"
	Skip          Act = "skip_event"
	Drop          Act = "drop_projection"
	Declare       Act = "declare_projection"
	Check         Act = "check_invariants"
	CancelCheck   Act = "cancel_check"
	OpenAccount   Act = "open_account"
	EraseAccount  Act = "erase_account"
	IssueKey      Act = "issue_key"
	RevokeKey     Act = "revoke_key"
	CreateChecker Act = "create_checker"
	CancelJob     Act = "cancel_job"
	FailJob       Act = "fail_job"
	SetRetention  Act = "set_retention"
	PlaceHold     Act = "place_hold"
	ReleaseHold   Act = "release_hold"
	EraseJob      Act = "erase_job"
	EraseChecker  Act = "erase_checker"
	ErasePerson   Act = "erase_person"
	DecideDispute Act = "decide_dispute"
)

// sentences has each act with the verb of a sentence, in the order of every list of acts.
var sentences = []struct {
	act   Act
	words string
}{
	{Look, "opened the texts of"}, {GrantCredits, "granted credits to"}, {Suspend, "suspended"}, {Reinstate, "reinstated"},
	{ChoosePool, "chose the checkers of"}, {Invite, "invited"}, {NewLink, "created a sign-in link for"},
	{GrantRole, "added a role to"}, {RevokeRole, "revoked a role of"}, {Disable, "disabled"}, {CreatePool, "created"},
	{AddChecker, "added a checker to"}, {RemoveChecker, "removed a checker from"}, {Rebuild, "requested a rebuild of"},
	{Retry, "retried"}, {Skip, "skipped an event in"}, {Drop, "dropped"}, {Declare, "declared"}, {Check, "started a check of"},
	{CancelCheck, "cancelled a check of"}, {OpenAccount, "opened"}, {EraseAccount, "erased"}, {IssueKey, "created a key of"},
	{RevokeKey, "revoked a key of"}, {CreateChecker, "registered"}, {CancelJob, "cancelled"}, {FailJob, "ended as untestable"},
	{EraseJob, "erased"}, {EraseChecker, "erased"}, {ErasePerson, "erased"}, {SetRetention, "set how long evidence is kept of"},
	{PlaceHold, "placed a hold on"}, {ReleaseHold, "released the hold on"}, {DecideDispute, "decided a dispute of"},
}

// Acts lists them.
func Acts() []Act {
	acts := make([]Act, len(sentences))
	for i, s := range sentences {
		acts[i] = s.act
	}
	return acts
}

// Words gives the act as the verb of a sentence. An act of a newer version has none.
func (a Act) Words() string {
	for _, s := range sentences {
		if s.act == a {
			return s.words
		}
	}
	return string(a)
}

// MaxReason bounds a reason, in characters.
const MaxReason = 500

const (
	onCommandLine = "cli:"
	maxUser       = 100
)

// OnCommandLine is the operator's id for a user of the command line. Such a user
// reaches the service's own database and has no sign-in.
func OnCommandLine(user string) string { return onCommandLine + user }

// WhoOnCommandLine gives the user's name if the operator acted on the command line.
func WhoOnCommandLine(personID string) (user string, is bool) {
	return strings.CutPrefix(personID, onCommandLine)
}

// Acted records that an operator began an act. Its effect in the log, if there is one,
// follows under the same correlation id.
type Acted struct {
	ActID    string `json:"actId"`
	PersonID string `json:"personId"` // the operator, or a user of the command line
	Act      Act    `json:"act"`
	Subject  string `json:"subject"` // a stream, or the name of a read model
	// AccountID is the account of the subject; its people see a look.
	AccountID string `json:"accountId,omitempty"`
	Detail    string `json:"detail,omitempty"` // such as an amount, or a role
	Reason    string `json:"reason"`
}

// Refused records that an act was not done, or that its outcome is unknown.
type Refused struct {
	ActID   string `json:"actId"`
	Problem string `json:"problem"`
}

func (*Acted) EventType() string   { return "operator.acted" }
func (*Refused) EventType() string { return "operator.refused" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return domain.Specs(&Acted{}, &Refused{})
}

// State holds an operator's acts. It belongs to its fold: Evolve changes the maps in
// place.
type State struct {
	acts    map[string]bool
	refused map[string]bool
}

// Evolve folds one event into the state and takes the old state over. Events of
// other aggregates change nothing.
func Evolve(s State, e domain.Event) State {
	if s.acts == nil {
		s.acts, s.refused = map[string]bool{}, map[string]bool{}
	}
	switch e := e.(type) {
	case *Acted:
		s.acts[e.ActID] = true
	case *Refused:
		s.refused[e.ActID] = true
	}
	return s
}

// DecideAct records an act. It refuses an act without a reason. The same id is a repeat.
func DecideAct(s State, a Acted) ([]domain.Event, error) {
	a.Reason = strings.TrimSpace(a.Reason)
	switch {
	case s.refused[a.ActID]:
		return nil, domain.Conflict("it was refused before").WithHint("load the page again, then send the form")
	case s.acts[a.ActID]:
		return nil, nil
	case !slices.Contains(Acts(), a.Act):
		return nil, domain.InvalidAt("act", "is none that operators do")
	case len([]rune(a.PersonID)) > maxUser || strings.ContainsFunc(a.PersonID, unicode.IsControl):
		return nil, domain.InvalidAt("by", "must have 95 characters at most, and no control characters")
	case a.Reason == "":
		return nil, domain.InvalidAt("reason", "must not be blank")
	case len([]rune(a.Reason)) > MaxReason:
		return nil, domain.InvalidAt("reason", "must have 500 characters at most")
	}
	return []domain.Event{&a}, nil
}

// DecideRefused records that an act was not done, once.
func DecideRefused(s State, actID, problem string) ([]domain.Event, error) {
	switch {
	case !s.acts[actID]:
		return nil, domain.NotFound("act")
	case s.refused[actID]:
		return nil, nil
	}
	return []domain.Event{&Refused{ActID: actID, Problem: problem}}, nil
}
