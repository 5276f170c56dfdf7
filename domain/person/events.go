// Package person is somebody who signs in: invited, joined, and what they may
// do. What they are called and how they prove who they are is in no event: those
// are rows that can be erased (internal/credential). Everything here is pure.
package person

import (
	"slices"

	"humanqa/domain"
)

// Role is what somebody may do (decisions, "Roles").
type Role string

// The roles. The first three belong to one account each, and include those that
// stand below them.
const (
	Owner     Role = "owner"     // members, keys, secrets
	Developer Role = "developer" // jobs, projects, webhooks
	Viewer    Role = "viewer"    // reads
	Checker   Role = "checker"   // tests, as one checker
	Operator  Role = "operator"  // runs the service
)

// AccountRoles are the roles of an account, the strongest first.
func AccountRoles() []Role { return []Role{Owner, Developer, Viewer} }

// OfAccount says that the role belongs to an account.
func (r Role) OfAccount() bool { return slices.Contains(AccountRoles(), r) }

// Includes says that whoever has the role may do what the other one may. Only
// roles of accounts include others.
func (r Role) Includes(other Role) bool {
	if r == other {
		return true
	}
	have, want := slices.Index(AccountRoles(), r), slices.Index(AccountRoles(), other)
	return have >= 0 && want >= 0 && have <= want
}

// Grant is a role and where it holds.
type Grant struct {
	Role      Role   `json:"role"`
	AccountID string `json:"accountId,omitempty"` // of an account's role
	CheckerID string `json:"checkerId,omitempty"` // of a checker
}

// Invited makes a person. The grant holds from here on, but nobody can sign in
// as them before they joined.
type Invited struct {
	Grant
}

// Joined says that the person took the invitation up.
type Joined struct{}

// RoleGranted gives a person a role. A role of an account takes the place of
// the one they had there.
type RoleGranted struct {
	Grant
}

// RoleRevoked takes a role back.
type RoleRevoked struct {
	Grant
}

// Disabled ends all a person may do, for good.
type Disabled struct {
	Reason string `json:"reason,omitempty"`
}

func (*Invited) EventType() string     { return "person.invited" }
func (*Joined) EventType() string      { return "person.joined" }
func (*RoleGranted) EventType() string { return "person.role_granted" }
func (*RoleRevoked) EventType() string { return "person.role_revoked" }
func (*Disabled) EventType() string    { return "person.disabled" }

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return []domain.EventSpec{
		{New: func() domain.Event { return new(Invited) }},
		{New: func() domain.Event { return new(Joined) }},
		{New: func() domain.Event { return new(RoleGranted) }},
		{New: func() domain.Event { return new(RoleRevoked) }},
		{New: func() domain.Event { return new(Disabled) }},
	}
}
