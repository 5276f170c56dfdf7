// Package person is a person with a sign-in: invited, joined, and their roles. No event
// holds their name or their passkeys and passwords: those are rows that can be erased
// (internal/credential). Everything here is pure.
package person

import (
	"slices"

	"humanqa/domain"
)

// Role is a set of rights (decisions, "Roles").
type Role string

// The roles. The first three belong to one account each, and each includes the
// next.
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

// Includes reports whether the role has all rights of the other one. Only roles of
// accounts include others.
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

// Invited makes a person. The role holds from here on, but the person cannot sign in
// before they have joined.
type Invited struct {
	Grant
}

// Joined records that the person accepted the invitation.
type Joined struct{}

// RoleGranted gives a person a role. It replaces their earlier role in the same
// account.
type RoleGranted struct {
	Grant
}

// RoleRevoked takes a role back.
type RoleRevoked struct {
	Grant
}

// Disabled ends all rights of a person, for good.
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
	return domain.Specs(&Invited{}, &Joined{}, &RoleGranted{}, &RoleRevoked{}, &Disabled{})
}
