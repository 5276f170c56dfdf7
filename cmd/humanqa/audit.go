package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/fsck"
	"humanqa/domain/audit"
	"humanqa/projections/auditlog"
)

type auditKeyCmd struct{}

func (auditKeyCmd) Run(ctx context.Context, a *app, c *service.Core) error {
	verifier, err := c.Signer().Verifier(ctx)
	if err != nil {
		return err
	}
	return a.print(map[string]any{"verifier": verifier}, "%s", verifier)
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

func (auditCheckpointCmd) Run(ctx context.Context, a *app, c *service.Core) error {
	signed, err := c.NewCheckpoint(ctx, a.log)
	if err != nil {
		return err
	}
	return a.print(printedCheckpoint{
		Origin: signed.Origin, Size: signed.Size, Root: signed.Root.String(), Position: signed.Position.String(),
		Time: signed.Time, Note: signed.Note,
	}, "%s", strings.TrimSuffix(signed.Note, "\n"))
}

type auditProveCmd struct {
	Event   uuid.UUID `required:"" help:"The event's id, as replay --json shows it."`
	Against string    `type:"existingfile" placeholder:"CHECKPOINT" help:"Prove it in this checkpoint, not in a new one."`
}

func (p *auditProveCmd) Run(ctx context.Context, a *app, c *service.Core) error {
	in, err := p.checkpoint(ctx, a, c)
	if err != nil {
		return err
	}
	proof, err := auditlog.Prove(ctx, auditlog.NewTree(c.DB), p.Event, in)
	if err != nil {
		return err
	}
	return json.NewEncoder(a.out).Encode(proof)
}

func (p *auditProveCmd) checkpoint(ctx context.Context, a *app, c *service.Core) (auditlog.Checkpoint, error) {
	if p.Against == "" {
		return c.NewCheckpoint(ctx, a.log)
	}
	kept, err := c.Installation().ReadCheckpoints(ctx, []string{p.Against})
	if err != nil {
		return auditlog.Checkpoint{}, err
	}
	return kept[0], nil
}

type auditVerifyCmd struct {
	Against []string `type:"existingfile" placeholder:"CHECKPOINT" help:"A checkpoint from a file that humanqa audit checkpoint wrote. May be repeated."`
}

// verified is the answer of audit verify.
type verified struct {
	Events      int64           `json:"events"`
	InTree      int64           `json:"inTree"`      // of them, when the check began
	Checkpoints int             `json:"checkpoints"` // held against the log
	Root        string          `json:"root"`
	MACsBehind  string          `json:"macsBehind"` // the position behind which each event of the service carries a MAC, or none
	Findings    []audit.Finding `json:"findings"`
}

func (v *auditVerifyCmd) Run(ctx context.Context, a *app, c *service.Core) error {
	check, findings, err := c.Installation().AgainstTree(ctx, v.Against, fsck.NothingElse)
	if err != nil {
		return err
	}
	out := verified{
		Events: check.Events(), InTree: check.Compared(), Checkpoints: check.Signed, Root: check.Root().String(),
		Findings:   findings,
		MACsBehind: "none",
	}
	if b := check.Bound(); b.Key != "" {
		out.MACsBehind = b.At.String()
	}
	if len(findings) > 0 {
		err = errors.New("the log is not the one that was signed: keep the data directory as it is, and the checkpoints")
	}
	return a.conclude(out, append(linesOf(findings),
		fmt.Sprintf("%d events, %d of them in the tree, %d checkpoints, root %s, MACs behind position %s, %d findings",
			out.Events, out.InTree, out.Checkpoints, out.Root, out.MACsBehind, len(findings))), err)
}

type auditAcceptCmd struct {
	Event  uuid.UUID `help:"Accept this event, which audit verify names: it counts as if the service had written it."`
	Reason filled    `required:"" help:"Why; it stands in the log."`
}

// Run accepts one event. Without an event it lets the audit go on behind a finding that
// names none, and that an operator can explain: a signing key that was made anew, lost
// checkpoints.
func (x *auditAcceptCmd) Run(ctx context.Context, a *app, c *service.Core) error {
	if x.Event != uuid.Nil {
		if err := c.Judge(ctx, a.log, x.Event, false, string(x.Reason)); err != nil {
			return err
		}
		return a.print(map[string]any{"event": x.Event}, "accepted: event %s counts", x.Event)
	}
	if err := c.Accept(ctx, string(x.Reason)); err != nil {
		return err
	}
	verifier, err := c.Signer().Verifier(ctx)
	if err != nil {
		return err
	}
	return a.print(map[string]any{"verifier": verifier}, "accepted: from here on the log is proved by %s; "+
		"events that are not proved stay findings", verifier)
}

type auditDisownCmd struct {
	Event  uuid.UUID `arg:"" help:"The event's id, as audit verify names it."`
	Reason filled    `required:"" help:"Why; it stands in the log."`
}

// Run says of an event that somebody put into the log past the service that it counts for
// nothing. It stays in the log.
func (x *auditDisownCmd) Run(ctx context.Context, a *app, c *service.Core) error {
	if err := c.Judge(ctx, a.log, x.Event, true, string(x.Reason)); err != nil {
		return err
	}
	return a.print(map[string]any{"event": x.Event}, "disowned. humanqa projections rebuild makes rows anew that fsck names")
}

type auditExportCmd struct {
	Out string `type:"path" placeholder:"FILE" help:"The file to write, which must not exist; standard output without it."`
}

func (x *auditExportCmd) Run(ctx context.Context, a *app, c *service.Core) (err error) {
	signed, err := c.NewCheckpoint(ctx, a.log)
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
	events, err := auditlog.Export(ctx, c.Signer(), signed, out)
	if err != nil || x.Out == "" {
		return err
	}
	return a.print(map[string]any{"file": x.Out, "events": events}, "%s: %d events, verified anywhere by: go run ./cmd/auditverify \"$(humanqa audit key)\" %s", x.Out, events, x.Out)
}
