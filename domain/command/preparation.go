package command

import (
	"context"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"humanqa/domain"
	"humanqa/domain/command/settings"
	"humanqa/domain/credits"
	"humanqa/domain/host"
	"humanqa/domain/identity"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/repository"
)

const (
	// maxRegressions bounds the items that a test repeats from the project's past
	// (decisions, "Open failures").
	maxRegressions = 20
	// arriving is how long a job that the log does not have yet counts as on its way. It
	// is longer than the appends before it may take.
	arriving = time.Minute
	// Decisions, "Lengths".
	maxTitle       = 200
	maxProjectName = 120
)

// preparation is the state of a hosted test, or a session, after its project is settled
// and before it is paid for.
type preparation struct {
	projectID  string
	slaMinutes int // the project's default, 0 without one
	jobType    job.Type
	typeEcho   string
	// regressions open the checklist. prepared are the ids of the fixes among them, which
	// these jobs took from the project's queue.
	regressions []job.Item
	prepared    []string
	// living is the job of an earlier deploy with one of the keys. The rest is empty
	// then, and nothing was written.
	living string
}

// prepareTest finds the project, or opens it, attaches the webhook, and takes fixes from
// the queue for the jobs. Every refusal comes before the first write, in the order 404,
// 409, 402. A repeat of the same command changes nothing.
func (s *Service) prepareTest(ctx context.Context, cause Cause, in HostedTest, jobIDs, deployKeys []string) (preparation, error) {
	to, err := s.findProject(ctx, cause, in)
	if err != nil {
		return preparation{}, err
	}
	outcomes, err := s.readOutcomes(ctx, cause, to.state, deployKeys)
	if err != nil {
		return preparation{}, err
	}
	if living := livingDeploy(to.state, deployKeys, jobIDs[0], outcomes); living != "" {
		return preparation{living: living}, nil
	}
	test, err := s.testCommand(ctx, cause, in, to)
	if err != nil {
		return preparation{}, err
	}
	if err := test.RefuseSecret(to.state); err != nil {
		return preparation{}, err
	}
	jobType, echo, failures, err := s.readHistory(ctx, cause, in, to)
	if err != nil {
		return preparation{}, err
	}
	charges := make([]credits.Charge, len(jobIDs))
	for i, id := range jobIDs {
		charges[i] = credits.Charge{JobID: id, Amount: jobType.Price(in.Urgent)}
	}
	if err := s.ledger.CheckFunds(ctx, cause, charges...); err != nil {
		if !to.state.Exists { // a new project has no loop
			return preparation{}, err
		}
		return preparation{}, s.tellLoop(ctx, cause, to.projectID, in.Loop, jobIDs[0], err)
	}

	if winner, err := s.linkHost(ctx, cause, in, to); err != nil {
		return preparation{}, err
	} else if winner != to.projectID {
		return s.prepareTest(ctx, cause, in, jobIDs, deployKeys) // the host is linked now: no third round
	}
	test.JobIDs, test.DeployKeys = jobIDs, deployKeys
	if len(deployKeys) > 0 && !slices.ContainsFunc(deployKeys, func(k string) bool { return strings.HasPrefix(k, "commit:") }) {
		test.Commit = in.Commit
	}
	var prepared preparation
	_, err = repository.Decide(ctx, s.Projects, cause, domain.ProjectStream(to.projectID), func(st project.State) ([]domain.Event, error) {
		if living := livingDeploy(st, deployKeys, jobIDs[0], outcomes); living != "" {
			prepared = preparation{living: living}
			return nil, nil
		}
		prepared = preparation{projectID: to.projectID, jobType: jobType, typeEcho: echo}
		if st.DefaultSLAMinutes != nil {
			prepared.slaMinutes = *st.DefaultSLAMinutes
		}
		write := test
		if !jobType.Automatic() { // a review fetches the page, which cannot show whether a bug is gone
			waiting := st.Waiting(jobIDs, outcomes.fix)
			prepared.regressions, prepared.prepared = regressions(failures, waiting)
			write.Take, write.Forget = prepared.prepared, st.Verified(outcomes.fix)
		}
		return project.DecideTest(st, write)
	})
	if err != nil {
		return preparation{}, fmt.Errorf("prepare project %s: %w", to.projectID, err)
	}
	return prepared, nil
}

// destination is the project of a hosted test, as the log had it a moment ago. state is
// empty for a project that is still to be opened.
type destination struct {
	projectID string
	state     project.State
	linked    bool // or needs no link
}

// findProject names the project: the caller's, the host's, the newest one with the host
// in its default URL, or a new one (decisions, "Auto-link"). The id of a new project
// derives from account and host, so that two first tests at once open one project.
func (s *Service) findProject(ctx context.Context, cause Cause, in HostedTest) (destination, error) {
	if in.ProjectID != "" {
		p, err := s.openProject(ctx, cause.AccountID, in.ProjectID)
		return destination{projectID: in.ProjectID, state: p, linked: true}, err
	}
	id, err := s.linkedProject(ctx, cause, in.Host)
	if err != nil {
		return destination{}, err
	}
	linked := id != ""
	for _, older := range identity.OlderSites(in.URL) {
		if id == "" && older != in.Host { // linkHost then links today's form, too
			if id, err = s.linkedProject(ctx, cause, older); err != nil {
				return destination{}, err
			}
		}
	}
	bound := id != ""
	if !bound {
		var found bool
		if id, found, err = s.Reads.ProjectForHost(ctx, cause.AccountID, in.Host); err != nil {
			return destination{}, domain.Unavailable(fmt.Errorf("project for the host: %w", err))
		} else if !found {
			return destination{projectID: domain.CommandIDFor("project", cause.AccountID, in.Host).String()}, nil
		}
	}
	p, err := s.openProject(ctx, cause.AccountID, id)
	if bound && domain.IsKind(err, domain.KindNotFound) {
		err = nil // linked by a request that has not opened the project yet, and may never open it
	}
	return destination{projectID: id, state: p, linked: linked}, err
}

// linkedProject is the project to which the host is bound; empty: none.
func (s *Service) linkedProject(ctx context.Context, cause Cause, site string) (string, error) {
	return repository.Read(ctx, s.Hosts, domain.HostStream(cause.AccountID, site), func(st host.State) string { return st.ProjectID })
}

// linkHost binds the host to the project and says which project it is bound to.
func (s *Service) linkHost(ctx context.Context, cause Cause, in HostedTest, to destination) (string, error) {
	if to.linked {
		return to.projectID, nil
	}
	winner, _, err := settings.Execute(ctx, s.Commands, s.Hosts, cause, domain.HostStream(cause.AccountID, in.Host),
		func(st host.State, now time.Time) ([]domain.Event, error) {
			return host.DecideLink(st, host.Linked{AccountID: cause.AccountID, Host: in.Host, ProjectID: to.projectID, At: now})
		},
		func(st host.State) string { return st.ProjectID })
	return winner, err
}

// testCommand is the test's command for its project, without the fixes.
func (s *Service) testCommand(ctx context.Context, cause Cause, in HostedTest, of destination) (project.TestCommand, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return project.TestCommand{}, err
	}
	test := project.TestCommand{
		WebhookURL: in.Webhook.URL, Events: in.Webhook.Events, Supplied: in.Webhook.Secret != "", At: now,
	}
	switch {
	case test.Supplied:
		test.Secret, err = s.SealSecret(ctx, cause, of.projectID, []byte(in.Webhook.Secret))
		if err == nil && s.sameSecret(ctx, cause, of, in.Webhook.Secret) {
			test.Secret.Fingerprint = of.state.Secret.Fingerprint
		}
	case in.Webhook.URL != "" && of.state.Secret.ID == "":
		test.Secret, err = s.NewSecret(ctx, cause, of.projectID)
	}
	if err != nil || of.state.Exists {
		return test, err
	}
	token, err := s.DeployHookToken(ctx, cause.AccountID, of.projectID, "")
	test.Open = project.CreateCommand{
		Opening:   project.Opening{Name: shorten(in.Host, maxProjectName)},
		AccountID: cause.AccountID, Host: in.Host, HookHash: domain.HashToken(token),
	}
	return test, err
}

// sameSecret compares a client's secret with the project's own. A fingerprint
// may be from the time when fingerprints did not carry their use.
func (s *Service) sameSecret(ctx context.Context, cause Cause, of destination, secret string) bool {
	if of.state.Secret.ID == "" {
		return false
	}
	own, err := s.Sealer.Unseal(ctx, cause.AccountID, domain.ProjectStream(of.projectID), of.state.Secret.Sealed)
	return err == nil && subtle.ConstantTimeCompare(own, []byte(secret)) == 1 // a shredded secret equals no other
}

// readHistory gives the test's type and the project's open failures. It detects a type
// that the test does not name.
func (s *Service) readHistory(
	ctx context.Context, cause Cause, in HostedTest, of destination,
) (t job.Type, echo string, failures []Regression, err error) {
	tested := false
	if of.state.Exists {
		if tested, err = s.Reads.Tested(ctx, cause.AccountID, of.projectID); err != nil {
			return "", "", nil, domain.Unavailable(fmt.Errorf("whether project %s was tested: %w", of.projectID, err))
		}
		failures, err = s.Reads.OpenFailures(ctx, cause.AccountID, of.projectID, maxRegressions)
		if err != nil {
			return "", "", nil, domain.Unavailable(fmt.Errorf("open failures of project %s: %w", of.projectID, err))
		}
	}
	if in.Type != "" {
		return in.Type, in.TypeEcho, failures, nil
	}
	t = job.Detect(in.URL, in.Feature, tested)
	return t, t.Title(), failures, nil
}

// regressions merges failures and fixes, each key once, and keeps the newest. A fix
// replaces the failure with the same key.
func regressions(failures []Regression, fixes []project.Fix) (items []job.Item, prepared []string) {
	type candidate struct {
		item job.Item
		fix  string // its id
		at   time.Time
	}
	var all []candidate
	for _, f := range fixes {
		all = append(all, candidate{fix: f.ID, at: f.PreparedAt, item: job.Item{
			Key: f.Key, Description: f.Description, ExpectedOutcome: f.ExpectedOutcome,
			Severity: f.Severity, Origin: job.PreparedFix,
		}})
	}
	for _, f := range failures {
		known := func(c candidate) bool { return c.item.Key == f.Key }
		if !slices.ContainsFunc(all, known) {
			f.Origin = job.OpenFailure
			all = append(all, candidate{at: f.FailedAt, item: f.Item})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return b.at.Compare(a.at) })
	for _, c := range all[:min(len(all), maxRegressions)] {
		items = append(items, c.item)
		if c.fix != "" {
			prepared = append(prepared, c.fix)
		}
	}
	return items, prepared
}

// shorten keeps the first characters of a text.
func shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit])
}
