package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"humanqa/cmd/humanqa/service/logging"
	"humanqa/projections"
	"humanqa/projections/access"
	"humanqa/projections/overall"
)

// page bounds every list.
type page struct {
	Limit  int `default:"100" help:"How many at most, 1 to 1000."`
	Offset int `help:"How many to leave out before."`
}

// Validate is called by kong.
func (p page) Validate() error {
	if p.Limit < 1 || p.Limit > 1000 {
		return errors.New("--limit must be 1 to 1000")
	}
	if p.Offset < 0 {
		return errors.New("--offset must not be negative")
	}
	return nil
}

func (p page) access() access.Page { return access.Page{Limit: p.Limit, Offset: p.Offset} }

// list prints the entries that find gives: as one object, which names the list, or as a
// line for each and a line about the rest. The read models show everything that was
// written before. A named account must exist.
func list[T any, L fmt.Stringer](
	ctx context.Context, a *app, reads *projections.Reads, name string, account *string, p page, of func(T) L,
	find func() ([]T, int, error),
) error {
	if account != nil {
		if _, err := reads.Access.Account(ctx, *account); err != nil {
			return err
		}
	}
	found, total, err := find()
	if err != nil {
		return err
	}
	listed, lines := make([]L, len(found)), []string{}
	for i, f := range found {
		listed[i] = of(f)
		lines = append(lines, listed[i].String())
	}
	if n := p.Offset + len(lines); len(lines) < total {
		lines = append(lines, fmt.Sprintf("%d to %d of %d: --offset %d goes on", min(p.Offset+1, n), n, total, n))
	}
	if len(lines) == 0 {
		lines = []string{"none"}
	}
	return a.print(map[string]any{name: listed, "total": total}, "%s", strings.Join(lines, "\n"))
}

type accountListCmd struct {
	page `embed:""`
}

// listedAccount is an account of the JSON form.
type listedAccount struct {
	AccountID string `json:"accountId"`
	Name      string `json:"name"`
	Status    string `json:"status"` // active, suspended, erasing or erased
	Sandbox   bool   `json:"sandbox"`
}

func listedAccountOf(a access.Account) listedAccount {
	l := listedAccount{AccountID: a.ID, Name: a.Name, Status: "active", Sandbox: a.Sandbox}
	switch {
	case a.Finished:
		l.Status = "erased"
	case a.Erased != nil:
		l.Status = "erasing" // humanqa account erase was cut off
	case a.Suspended:
		l.Status = "suspended"
	}
	return l
}

func (l listedAccount) String() string {
	kind := "live"
	if l.Sandbox {
		kind = "sandbox"
	}
	return fmt.Sprintf("%s  %-9s  %-7s  %s", l.AccountID, l.Status, kind, logging.OneLine(l.Name))
}

func (c *accountListCmd) Run(ctx context.Context, a *app, reads *projections.Reads) error {
	return list(ctx, a, reads, "accounts", nil, c.page, func(of overall.Account) listedAccount { return listedAccountOf(of.Account) },
		func() ([]overall.Account, int, error) { return reads.Overall.Accounts(ctx, "", c.access(), time.Now()) })
}

type keyListCmd struct {
	Account string `required:"" help:"The account's id."`

	page `embed:""`
}

// listedKey is a key of the JSON form.
type listedKey struct {
	KeyID     string     `json:"keyId"`
	Hint      string     `json:"hint"` // how the key begins
	Status    string     `json:"status"`
	Scope     string     `json:"scope"`
	ProjectID *string    `json:"projectId"`
	ExpiresAt *time.Time `json:"expiresAt"`
	Name      string     `json:"name"`
	IssuedBy  string     `json:"issuedBy"`
	IssuedAt  time.Time  `json:"issuedAt"`
	UsedAt    *time.Time `json:"usedAt"` // to the minute
}

func listedKeyOf(k access.IssuedKey) listedKey {
	l := listedKey{KeyID: k.ID, Hint: k.Hint, Status: "active", Scope: string(k.Scope), ProjectID: given(k.ProjectID),
		ExpiresAt: k.ExpiresAt, Name: k.Name, IssuedBy: k.IssuedBy, IssuedAt: k.IssuedAt, UsedAt: k.UsedAt}
	switch {
	case k.Revoked:
		l.Status = "revoked"
	case k.ExpiresAt != nil && !k.ExpiresAt.After(time.Now()):
		l.Status = "expired"
	}
	return l
}

// given is null in JSON for a value that was never given.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (l listedKey) String() string {
	line := fmt.Sprintf("%s  %s…  %-7s  %s", l.KeyID, l.Hint, l.Status, l.Scope)
	if l.ProjectID != nil {
		line += "  project " + *l.ProjectID
	}
	if l.ExpiresAt != nil {
		line += "  until " + l.ExpiresAt.Format(time.RFC3339)
	}
	if l.UsedAt != nil {
		line += "  used " + l.UsedAt.UTC().Format(time.RFC3339)
	}
	line += "  by " + logging.OneLine(l.IssuedBy)
	if l.Name != "" {
		line += "  " + logging.OneLine(l.Name)
	}
	return line
}

func (c *keyListCmd) Run(ctx context.Context, a *app, reads *projections.Reads) error {
	return list(ctx, a, reads, "keys", &c.Account, c.page, listedKeyOf,
		func() ([]access.IssuedKey, int, error) { return reads.Access.Keys(ctx, c.Account, c.access()) })
}

type checkerListCmd struct {
	page `embed:""`
}

// listedChecker is a checker of the JSON form.
type listedChecker struct {
	CheckerID string   `json:"checkerId"`
	Name      string   `json:"name"`
	Accounts  []string `json:"accounts"` // their own
}

func listedCheckerOf(k overall.Checker) listedChecker {
	return listedChecker{CheckerID: k.ID, Name: k.Name, Accounts: append([]string{}, k.Accounts...)}
}

func (l listedChecker) String() string {
	line := l.CheckerID + "  " + logging.OneLine(l.Name)
	if len(l.Accounts) > 0 {
		line += "  of " + strings.Join(l.Accounts, ", ")
	}
	return line
}

func (c *checkerListCmd) Run(ctx context.Context, a *app, reads *projections.Reads) error {
	return list(ctx, a, reads, "checkers", nil, c.page, listedCheckerOf,
		func() ([]overall.Checker, int, error) { return reads.Overall.Checkers(ctx, "", "", c.access()) })
}
