package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/backoff"
	"humanqa/projections/auditlog"
)

// logIsAsSigned is the invariant that the audit holds (ARCHITECTURE.md).
const logIsAsSigned = 22

// treeLimit is how long a command waits for the tree to show the log's end.
const treeLimit = 5 * time.Minute

func (c *core) signer() *auditlog.Signer {
	return auditlog.NewSigner(c.db, c.log, c.vault, c.clock.Now)
}

// growTree waits until the tree holds every event there is by now. Where no
// service runs, this process grows it.
func (c *core) growTree(ctx context.Context, a *app) error {
	head, err := c.log.Head(ctx)
	if err != nil || head == (domain.Position{}) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, treeLimit)
	defer cancel()
	if !c.served {
		feed := eventstore.NewFeed(c.log, quiet(a.log)) // not run: it then reads pages
		grower := consumer.New(c.db, feed, quiet(a.log), auditlog.Projector{})
		growing, stop := context.WithCancel(ctx)
		grown := make(chan error, 1)
		go func() { grown <- grower.Run(growing) }()
		defer func() {
			stop()
			if err := <-grown; err != nil {
				a.log.WithError(err).Warn("the tree did not grow in order")
			}
		}()
	}
	for {
		all, err := consumer.List(ctx, c.db)
		if err != nil {
			return err
		}
		for _, s := range all {
			switch {
			case s.Name != auditlog.Name || !s.Serving:
			case s.Failure != nil:
				return fmt.Errorf("the tree stopped growing at %s: %s: humanqa projections list", s.Failure.Position, s.Failure.Detail)
			case s.Position.Compare(head) >= 0:
				return nil
			}
		}
		if backoff.Wait(ctx, 50*time.Millisecond) != nil {
			return errors.New("the tree did not get to the log's end: does a process with the role projector run? humanqa projections list")
		}
	}
}

// newCheckpoint signs the log as it is.
func (c *core) newCheckpoint(ctx context.Context, a *app) (auditlog.Checkpoint, error) {
	if err := c.growTree(ctx, a); err != nil {
		return auditlog.Checkpoint{}, err
	}
	signed, found, err := c.signer().Sign(ctx)
	if errors.Is(err, auditlog.ErrForked) {
		return signed, fmt.Errorf("%w: humanqa audit verify says where", err)
	}
	if err == nil && !found {
		err = errors.New("the log is empty: there is nothing to sign")
	}
	return signed, err
}

// checkpoint is the newest one, for the API.
func (c *core) checkpoint(ctx context.Context) (note, verifier string, err error) {
	signed, found, err := c.signer().Latest(ctx)
	if err != nil || !found {
		return "", "", err
	}
	verifier, err = c.signer().Verifier(ctx)
	return signed.Note, verifier, err
}

type auditKeyCmd struct{}

func (auditKeyCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, c *core) error {
		verifier, err := c.signer().Verifier(ctx)
		if err != nil {
			return err
		}
		return a.print(struct {
			Verifier string `json:"verifier"`
		}{verifier}, "%s", verifier)
	})
}

type auditCheckpointCmd struct{}

// printedCheckpoint is the JSON form.
type printedCheckpoint struct {
	Origin   string    `json:"origin"`
	Size     int64     `json:"size"`
	Root     string    `json:"root"`
	Position string    `json:"position"`
	Time     time.Time `json:"time"`
	Note     string    `json:"note"`
}

func (auditCheckpointCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, c *core) error {
		signed, err := c.newCheckpoint(ctx, a)
		if err != nil {
			return err
		}
		return a.print(printedCheckpoint{
			Origin: signed.Origin, Size: signed.Size, Root: signed.Root.String(), Position: signed.Position.String(),
			Time: signed.Time, Note: signed.Note,
		}, "%s", strings.TrimSuffix(signed.Note, "\n"))
	})
}

type auditProveCmd struct {
	Event   uuid.UUID `required:"" help:"The event's id, as replay --json shows it."`
	Against string    `type:"existingfile" placeholder:"CHECKPOINT" help:"Prove it in this checkpoint, not in a new one."`
}

func (p *auditProveCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, c *core) error {
		in, err := p.checkpoint(ctx, a, c)
		if err != nil {
			return err
		}
		proof, err := auditlog.Prove(ctx, auditlog.NewTree(c.db), p.Event, in)
		if err != nil {
			return err
		}
		return json.NewEncoder(a.out).Encode(proof)
	})
}

func (p *auditProveCmd) checkpoint(ctx context.Context, a *app, c *core) (auditlog.Checkpoint, error) {
	if p.Against == "" {
		return c.newCheckpoint(ctx, a)
	}
	kept, err := c.kept(ctx, []string{p.Against})
	if err != nil {
		return auditlog.Checkpoint{}, err
	}
	return kept[0], nil
}

// kept reads checkpoints that somebody kept.
func (c *core) kept(ctx context.Context, files []string) ([]auditlog.Checkpoint, error) {
	verifier, err := c.signer().Verifier(ctx)
	if err != nil {
		return nil, err
	}
	var kept []auditlog.Checkpoint
	for _, file := range files {
		signed, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		one, err := auditlog.Open(string(signed), verifier)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		kept = append(kept, one)
	}
	return kept, nil
}

type auditVerifyCmd struct {
	Against []string `type:"existingfile" placeholder:"CHECKPOINT" help:"A checkpoint that somebody kept; may be given several times."`
}

// verified is what audit verify answers.
type verified struct {
	Events      int64           `json:"events"`
	InTree      int64           `json:"inTree"`      // of them, when the check began
	Checkpoints int             `json:"checkpoints"` // held against the log
	Root        string          `json:"root"`
	MACsBehind  string          `json:"macsBehind"` // the position behind which each event of the service carries a MAC, or none
	Findings    []audit.Finding `json:"findings"`
}

func (v *auditVerifyCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, c *core) error {
		var out verified
		err := c.withCheck(ctx, v.Against, func(check *auditlog.Check) error {
			return auditlog.Each(ctx, c.log, func(e eventstore.RawEvent) error { return check.See(ctx, e) })
		}, func(check *auditlog.Check, findings []audit.Finding) {
			out = verified{
				Events: check.Events(), InTree: check.Compared(), Checkpoints: check.Signed, Root: check.Root().String(), Findings: findings,
				MACsBehind: "none",
			}
			if b := check.Bound(); b.Key != "" {
				out.MACsBehind = b.At.String()
			}
		})
		if err != nil {
			return err
		}
		if !a.json {
			for _, f := range out.Findings {
				if err := a.print(nil, "%s", f); err != nil {
					return err
				}
			}
		}
		if err := a.print(out, "%d events, %d of them in the tree, %d checkpoints, root %s, MACs behind position %s, %d findings",
			out.Events, out.InTree, out.Checkpoints, out.Root, out.MACsBehind, len(out.Findings)); err != nil {
			return err
		}
		if len(out.Findings) > 0 {
			return errors.New("the log is not the one that was signed: keep the data directory as it is, and the checkpoints")
		}
		return nil
	})
}

// withCheck holds the log that see reads against its tree and its checkpoints,
// those that are stored and those of the files.
func (c *core) withCheck(ctx context.Context, files []string, see func(*auditlog.Check) error, done func(*auditlog.Check, []audit.Finding)) error {
	kept, err := c.kept(ctx, files)
	if err != nil {
		return err
	}
	tx, err := c.db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	check, err := auditlog.NewCheck(ctx, tx, c.signer(), kept)
	if err != nil {
		return err
	}
	if err := see(check); err != nil {
		return err
	}
	found, err := check.Findings(ctx)
	if err != nil {
		return err
	}
	findings := make([]audit.Finding, len(found))
	for i, f := range found {
		findings[i] = audit.Finding{Invariant: logIsAsSigned, Stream: f.Stream, Problem: f.Problem}
		if f.Stream == "" {
			findings[i].Stream = "$all"
		}
	}
	done(check, findings)
	return nil
}

// checkAll checks the whole log, for the keeper.
func (c *core) checkAll(ctx context.Context) (findings int, err error) {
	err = c.withCheck(ctx, nil, func(check *auditlog.Check) error {
		return auditlog.Each(ctx, c.log, func(e eventstore.RawEvent) error { return check.See(ctx, e) })
	}, func(_ *auditlog.Check, found []audit.Finding) { findings = len(found) })
	return findings, err
}

type auditAcceptCmd struct {
	Reason string `required:"" help:"Why the log is accepted; it stands in the log."`
}

// Run lets the audit begin anew where it has found something that an operator knows of:
// a signing key or a keyset that was made anew, a time under an older version.
func (x *auditAcceptCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, c *core) error {
		if strings.TrimSpace(x.Reason) == "" {
			return errors.New("the reason is empty")
		}
		if err := c.binding.AcceptKey(ctx, "operator", x.Reason); err != nil {
			return err
		}
		if err := c.signer().Accept(ctx); err != nil {
			return err
		}
		verifier, err := c.signer().Verifier(ctx)
		if err != nil {
			return err
		}
		return a.print(struct {
			Verifier string `json:"verifier"`
		}{verifier}, "accepted: from here on the log is proved by %s and by MACs", verifier)
	})
}

type auditExportCmd struct {
	Out string `type:"path" placeholder:"FILE" help:"The file to write, which must not exist; standard output without it."`
}

func (x *auditExportCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, c *core) (err error) {
		signed, err := c.newCheckpoint(ctx, a)
		if err != nil {
			return err
		}
		out := a.out
		if x.Out != "" {
			file, err := os.OpenFile(x.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, file.Close()) }()
			out = file
		}
		events, err := auditlog.Export(ctx, c.log, c.signer(), signed, out)
		if err != nil || x.Out == "" {
			return err
		}
		return a.print(struct {
			File   string `json:"file"`
			Events int64  `json:"events"`
		}{x.Out, events}, "%s: %d events, verified anywhere by: go run ./cmd/auditverify \"$(humanqa audit key)\" %s", x.Out, events, x.Out)
	})
}
