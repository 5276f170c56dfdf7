package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/domain/project"
	"humanqa/domain/retention"
	"humanqa/httpapi/evidence"
	"humanqa/internal/blob"
	"humanqa/projections"
)

type evidenceUsageCmd struct {
	Account string `help:"Only this account, by its id."`
}

// evidenceUsage is an account of the JSON form.
type evidenceUsage struct {
	AccountID string        `json:"accountId"`
	Due       evidence.Size `json:"due"`
	NextMonth evidence.Size `json:"nextMonth"`
	evidence.Usage
}

// printUsage tells the accounts, the one with the most evidence first.
func (a *app) printUsage(all map[string]evidence.Usage) error {
	list, lines := []evidenceUsage{}, []string{}
	for _, id := range slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(all[b].Kept().Bytes, all[a].Kept().Bytes), cmp.Compare(a, b))
	}) {
		u := all[id]
		list = append(list, evidenceUsage{AccountID: id, Due: u.Going(), NextMonth: u.NextMonth(), Usage: u})
		lines = append(lines, fmt.Sprintf("%s  pictures %s, recordings %s, held %s, goes now %s, within 30 days %s, no longer kept %s",
			id, sized(u.Pictures.Size), sized(u.Recordings.Size), sized(u.Held()), sized(u.Going()), sized(u.NextMonth()), sized(u.Gone)))
	}
	if len(lines) == 0 {
		lines = []string{"none"}
	}
	return a.print(map[string]any{"accounts": list}, "%s", strings.Join(lines, "\n"))
}

func sized(s evidence.Size) string {
	return fmt.Sprintf("%d (%.1f MB)", s.Files, float64(s.Bytes)/1e6)
}

func (c *evidenceUsageCmd) Run(ctx context.Context, a *app, core *service.Core, _ *projections.Reads) error {
	all, err := evidence.UsageByAccount(ctx, core.DB, c.Account)
	if err != nil {
		return err
	}
	return a.printUsage(all)
}

type evidenceSweepCmd struct {
	DryRun bool `help:"Only show what would go."`
}

// Run may be repeated, after a crash too: it goes on where the last run ended.
func (c *evidenceSweepCmd) Run(ctx context.Context, a *app, core *service.Core, _ *projections.Reads) error {
	if c.DryRun {
		all, err := evidence.UsageByAccount(ctx, core.DB, "")
		if err != nil {
			return err
		}
		maps.DeleteFunc(all, func(_ string, u evidence.Usage) bool { return u.Going().Files == 0 })
		return a.printUsage(all)
	}
	files, err := blob.Open(ctx, core.Config.EvidenceURL)
	if err != nil {
		return err
	}
	defer func() { _ = files.Close() }() // nothing is pending on it
	swept, err := evidence.Expiry{DB: core.DB, Files: files, Commands: core.Commands}.Sweep(ctx)
	if err != nil {
		return fmt.Errorf("%w: run the same command again to go on", err)
	}
	waiting := ""
	if swept.Waiting {
		waiting = "; the rest of the files goes after the backup that is under way"
	}
	return a.print(swept, "%s let go, %s deleted%s", sized(swept.Expired), sized(swept.Erased), waiting)
}

type evidenceKeepCmd struct {
	auditTrail     `embed:""`
	Account        string    `xor:"whose" required:"" help:"The account, by its id."`
	Project        string    `xor:"whose" required:"" help:"The project, by its id."`
	EvidenceDays   *keepDays `placeholder:"DAYS" help:"Days after a job's end that evidence is kept, 1 to 3650, or ever."`
	RecordingsDays *keepDays `placeholder:"DAYS" help:"The same for recordings."`
	DryRun         bool      `help:"Only show what would go."`
}

// Validate is called by kong.
func (c *evidenceKeepCmd) Validate() error {
	if c.EvidenceDays == nil && c.RecordingsDays == nil {
		return errors.New("give --evidence-days, --recordings-days or both")
	}
	if wrong := c.change().Wrong(); len(wrong) > 0 {
		return fmt.Errorf("the days must be %d to %d, or ever to keep everything", retention.MinDays, retention.MaxDays)
	}
	return nil
}

func (c *evidenceKeepCmd) change() retention.Change {
	setting := func(k *keepDays) retention.Setting {
		if k == nil {
			return retention.Setting{}
		}
		return retention.Setting{Set: true, Value: k.days}
	}
	return retention.Change{Evidence: setting(c.EvidenceDays), Recordings: setting(c.RecordingsDays)}
}

// keepDays is a number of days, or ever.
type keepDays struct{ days *int }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *keepDays) UnmarshalText(text []byte) error {
	if string(text) == "ever" {
		return nil
	}
	days, err := strconv.Atoi(string(text))
	if err != nil {
		return fmt.Errorf("%q is no number of days, nor ever", text)
	}
	k.days = &days
	return nil
}

func (c *evidenceKeepCmd) Run(ctx context.Context, a *app, core *service.Core, reads *projections.Reads) error {
	of := command.EvidenceSubject{Kind: retention.OfAccount, ID: c.Account}
	if c.Project != "" {
		of = command.EvidenceSubject{Kind: retention.OfProject, ID: c.Project}
	}
	cause, err := causeOn(ctx, core, of)
	if err != nil {
		return err
	}
	keep, err := settingsOf(ctx, core, reads, cause.AccountID, c.Project)
	if err != nil {
		return err
	}
	keep = c.change().On(keep)
	would, err := evidence.Estimate(ctx, core.DB, cause.AccountID, c.Project, keep)
	if err != nil {
		return err
	}
	if c.DryRun {
		return a.print(would.Going(), "%s would go", sized(would.Going()))
	}
	err = c.recordShown(ctx, core, cause, command.OperatorAct{
		Act: oversight.SetRetention, Subject: of.Stream(), AccountID: cause.AccountID, Detail: keep.Words(),
	}, func(ctx context.Context, cause command.Cause) (at domain.Position, err error) {
		if c.Project == "" {
			_, at, err = core.Commands.SetAccountRetention(ctx, cause, c.change())
			return at, err
		}
		_, at, err = core.Commands.UpdateProject(ctx, cause, c.Project, command.UpdateProject{Changes: project.Changes{Keep: c.change()}})
		return at, err
	})
	if err != nil {
		return err
	}
	return a.print(struct {
		retention.Keep
		Goes evidence.Size `json:"goes"`
	}{keep, would.Going()}, "%s %s: %s; %s goes", of.Kind, of.ID, keep.Words(), sized(would.Going()))
}

// settingsOf are the settings of the account, or of one of its projects.
func settingsOf(ctx context.Context, core *service.Core, reads *projections.Reads, accountID, projectID string) (retention.Keep, error) {
	if projectID == "" {
		keep, _, err := core.Commands.AccountRetention(ctx, accountID)
		return keep, err
	}
	p, err := reads.Projects.Get(ctx, accountID, projectID)
	return p.Keep, err
}

// causeOn is the operator acting on the account of the subject.
func causeOn(ctx context.Context, core *service.Core, of command.EvidenceSubject) (command.Cause, error) {
	if of.Kind == retention.OfAccount {
		return service.OperatorCause(of.ID), nil
	}
	return operatorOn(ctx, core.Log, of.Stream())
}

// holdCmd are the flags of a hold.
type holdCmd struct {
	Account string `xor:"whose" required:"" help:"All evidence of the account, by its id."`
	Project string `xor:"whose" required:"" help:"The evidence of the project, by its id."`
	Job     string `xor:"whose" required:"" help:"The evidence of the job, by its id."`
	By      filled `default:"${user}" help:"The operator's name, for the record."`
	Reason  filled `required:"" help:"The reason, for the record. The account's people see it."`
}

func (c holdCmd) subject() command.EvidenceSubject {
	switch {
	case c.Account != "":
		return command.EvidenceSubject{Kind: retention.OfAccount, ID: c.Account}
	case c.Project != "":
		return command.EvidenceSubject{Kind: retention.OfProject, ID: c.Project}
	}
	return command.EvidenceSubject{Kind: retention.OfJob, ID: c.Job}
}

func (c holdCmd) run(
	ctx context.Context, a *app, core *service.Core, act oversight.Act, done string,
	do func(context.Context, command.Cause, command.EvidenceSubject, string, bool) (domain.Position, error),
) error {
	of := c.subject()
	cause, err := causeOn(ctx, core, of)
	if err != nil {
		return err
	}
	err = auditTrail{By: c.By, Reason: c.Reason}.recordShown(ctx, core, cause, command.OperatorAct{
		Act: act, Subject: of.Stream(), AccountID: cause.AccountID,
	}, func(ctx context.Context, cause command.Cause) (domain.Position, error) {
		return do(ctx, cause, of, string(c.Reason), true)
	})
	if err != nil {
		return err
	}
	return a.print(map[string]any{"kind": of.Kind, "id": of.ID, "status": done}, "the evidence of %s %s is %s", of.Kind, of.ID, done)
}

type evidenceHoldCmd struct {
	holdCmd `embed:""`
}

func (c *evidenceHoldCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	return c.run(ctx, a, core, oversight.PlaceHold, "held", core.Commands.PlaceHold)
}

type evidenceReleaseCmd struct {
	holdCmd `embed:""`
}

func (c *evidenceReleaseCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	return c.run(ctx, a, core, oversight.ReleaseHold, "released", core.Commands.ReleaseHold)
}

type evidenceCopyCmd struct {
	From string `arg:"" help:"Where the files are, as in HUMANQA_EVIDENCE_URL."`
	To   string `arg:"" help:"Where they go: file:///dir or s3://bucket?region=…"`
}

// Run may be repeated, and then copies the rest.
func (c *evidenceCopyCmd) Run(ctx context.Context, a *app, core *service.Core) (err error) {
	from, err := blob.Open(ctx, c.From)
	if err != nil {
		return fmt.Errorf("the old place %w", err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := blob.Open(ctx, c.To)
	if err != nil {
		return fmt.Errorf("the new place %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	out, err := evidence.Copy(ctx, core.DB, from, to)
	if err != nil {
		return err
	}
	next := "start the service with HUMANQA_EVIDENCE_URL set to the new place"
	if core.Served {
		next = "the service runs: stop it, run the same command again for what has changed, and then " + next
	}
	lines := []string{fmt.Sprintf("%d files copied, %d bytes; %d were there; %d that no row names any more removed; %s",
		out.Files, out.Bytes, out.There, out.Removed, next)}
	for _, key := range out.Lost {
		lines = append(lines, "lost before: "+key)
	}
	return a.print(out, "%s", strings.Join(lines, "\n"))
}
