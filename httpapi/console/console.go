// Package console has the pages of operators: the whole service over all accounts, and
// the operators' acts.
//
// Each file is one subject: its pages above, its forms below. Every form carries a
// reason and goes through act. It records operator, act and reason before the act
// happens (decisions, "Operators"). Texts of a client or a checker are on no page here
// until a look was recorded (looks.go), and the client sees that look.
package console

import (
	"context"
	"embed"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/node"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/credential"
	"humanqa/internal/invariantcheck"
	"humanqa/projections"
	"humanqa/projections/jobs"
	"humanqa/projections/overall"
	"humanqa/projections/people"
	"humanqa/webhooks"
)

// Templates are the package's, for ui.Config.
//
//go:embed templates/*.html
var Templates embed.FS

// Deps are the dependencies of the pages. All fields are required but Subscriptions.
type Deps struct {
	Commands    *command.Service
	Reads       *projections.Reads
	Credentials *credential.Store
	Deliveries  *webhooks.Log
	Log         Log
	Checks      *invariantcheck.Checks
	// StillAllowed refuses the tests of a URL that the account may no longer test.
	StillAllowed func(context.Context, people.Account, ...jobs.Outline) error
	// Link makes a link to a piece of an account's evidence that works for minutes.
	Link func(ctx context.Context, accountID, stored string) (string, error)
	// Status tells where each read model stands; DB takes the orders to them.
	Status func(context.Context) ([]consumer.Status, error)
	DB     *sqlx.DB
	// Problems says why the service is not ready.
	Problems func(context.Context) []wire.ReadyProblem
	Now      func() time.Time
	// Subscriptions lists the subscriptions to the log's node, and gives their number; nil
	// where another server has the log.
	Subscriptions func() ([]node.Subscription, int)
	// Facts are the versions in use, Settings the settings in force; neither holds a secret.
	Facts    []Fact
	Settings []Setting
}

// Log is the event log as it is stored: *eventstore.Client.
type Log interface {
	Head(ctx context.Context) (domain.Position, error)
	ReadRawPage(ctx context.Context, stream string, from, count uint64, each func(eventstore.RawEvent) error) error
	Late(ctx context.Context, at domain.Position, fromStart bool, now time.Time) (time.Duration, error)
}

// Fact is one fact about this binary, such as a version.
type Fact struct{ Name, Value string }

// Setting is a setting in force. The value of a secret says only that it is set.
type Setting struct {
	Name, Value, About string
	Given              bool // by the environment
}

// Pages are the pages of the package.
func Pages(d Deps) []ui.Page {
	aJob, anAccount := about("job", d.Reads.Overall.Job), about("account", d.Reads.Access.Account)
	aPerson, aPool := about("person", d.Reads.People.Person), about("pool", d.Reads.Pools.Pool)
	return []ui.Page{
		{Method: "GET", Pattern: "/console", For: ui.Operators, Handle: d.overview},

		{Method: "GET", Pattern: "/console/jobs", For: ui.Operators, Handle: d.jobs},
		{Method: "GET", Pattern: "/console/jobs/{id}", For: ui.Operators, Handle: aJob(d.job)},
		{Method: "POST", Pattern: "/console/jobs/{id}/disputes/{dispute}", For: ui.Operators, Fresh: true, Says: "The dispute is decided.",
			Handle: aJob(d.decideDispute)},

		{Method: "GET", Pattern: "/console/accounts", For: ui.Operators, Handle: d.accounts},
		{Method: "GET", Pattern: "/console/accounts/{id}", For: ui.Operators, Handle: anAccount(d.accountPage)},
		{Method: "POST", Pattern: "/console/accounts/{id}/credits", For: ui.Operators, Fresh: true, Says: "The credits are granted.",
			Handle: anAccount(d.grantCredits)},
		{Method: "POST", Pattern: "/console/accounts/{id}/suspend", For: ui.Operators, Fresh: true, Says: "The account is suspended.",
			Handle: anAccount(d.suspend)},
		{Method: "POST", Pattern: "/console/accounts/{id}/reinstate", For: ui.Operators, Fresh: true, Says: "The account is reinstated.",
			Handle: anAccount(d.reinstate)},
		{Method: "POST", Pattern: "/console/accounts/{id}/pool", For: ui.Operators, Says: "Saved.", Handle: anAccount(d.choosePool)},

		{Method: "GET", Pattern: "/console/people", For: ui.Operators, Handle: d.peoplePage},
		{Method: "POST", Pattern: "/console/people", For: ui.Operators, Fresh: true, Handle: d.invite},
		{Method: "GET", Pattern: "/console/people/{id}", For: ui.Operators, Handle: aPerson(d.personPage)},
		{Method: "POST", Pattern: "/console/people/{id}/link", For: ui.Operators, Fresh: true, Handle: aPerson(d.newLink)},
		{Method: "POST", Pattern: "/console/people/{id}/roles", For: ui.Operators, Fresh: true, Says: "Saved.",
			Handle: aPerson(d.grantRole)},
		{Method: "POST", Pattern: "/console/people/{id}/roles/revoke", For: ui.Operators, Fresh: true, Says: "Saved.",
			Handle: aPerson(d.revokeRole)},
		{Method: "POST", Pattern: "/console/people/{id}/disable", For: ui.Operators, Fresh: true, Says: "The person is disabled.",
			Handle: aPerson(d.disable)},

		{Method: "GET", Pattern: "/console/checkers", For: ui.Operators, Handle: d.checkers},
		{Method: "GET", Pattern: "/console/pools", For: ui.Operators, Handle: d.poolsPage},
		{Method: "POST", Pattern: "/console/pools", For: ui.Operators, Says: "The pool is created.", Handle: d.createPool},
		{Method: "GET", Pattern: "/console/pools/{id}", For: ui.Operators, Handle: aPool(d.poolPage)},
		{Method: "POST", Pattern: "/console/pools/{id}/checkers", For: ui.Operators, Says: "Saved.", Handle: aPool(d.changePool)},

		{Method: "GET", Pattern: "/console/evidence", For: ui.Operators, Handle: d.evidencePage},
		{Method: "POST", Pattern: "/console/evidence/hold", For: ui.Operators, Fresh: true, Says: "The hold is in place.",
			Handle: d.hold},
		{Method: "POST", Pattern: "/console/evidence/release", For: ui.Operators, Fresh: true, Says: "The hold is released.",
			Handle: d.releaseHold},

		{Method: "GET", Pattern: "/console/projections", For: ui.Operators, Handle: d.projectionsPage},
		{Method: "POST", Pattern: "/console/projections/{name}/rebuild", For: ui.Operators, Fresh: true,
			Says: "The rebuild is requested. It starts within a few seconds.", Handle: d.rebuild},
		{Method: "POST", Pattern: "/console/projections/{name}/retry", For: ui.Operators, Says: "The projection tries again.",
			Handle: d.retry},
		{Method: "POST", Pattern: "/console/projections/{name}/skip", For: ui.Operators, Fresh: true, Says: "The event is skipped.",
			Handle: d.skip},
		{Method: "GET", Pattern: "/console/webhooks", For: ui.Operators, Handle: d.webhooks},

		{Method: "GET", Pattern: "/console/streams", For: ui.Operators, Handle: d.streams},
		{Method: "GET", Pattern: "/console/streams/{stream}", For: ui.Operators, Handle: d.streamPage},
		{Method: "POST", Pattern: "/console/streams/{stream}/look", For: ui.Operators, Fresh: true, Handle: d.look},

		{Method: "GET", Pattern: "/console/checks", For: ui.Operators, Handle: d.checksPage},
		{Method: "POST", Pattern: "/console/checks", For: ui.Operators, Handle: d.startCheck},
		{Method: "POST", Pattern: "/console/checks/{id}/cancel", For: ui.Operators, Handle: d.cancelCheck},

		{Method: "GET", Pattern: "/console/acts", For: ui.Operators, Handle: d.acts},
		{Method: "GET", Pattern: "/console/system", For: ui.Operators, Handle: d.system},
	}
}

// often is the interval at which an open page that shows current state is renewed.
const often = 5 * time.Second

// show is a page that keeps itself current.
func show(template, title string, view any) ui.Answer {
	return ui.Answer{Template: template, Title: title, View: view, Every: often}
}

// pageOf is the part of a list that a request asks for.
func pageOf(r *ui.Request) overall.Page {
	return overall.Page{Limit: ui.PageSize, Offset: (ui.PageOf(r) - 1) * ui.PageSize}
}

// about finds the thing with the path's id, whichever account has it.
func about[T any](what string, get func(context.Context, string) (T, error)) func(ui.Handler[T]) func(*ui.Request) (ui.Answer, error) {
	return ui.With(func(r *ui.Request) (T, error) {
		id := r.PathValue("id")
		if _, err := uuid.Parse(id); err != nil {
			return *new(T), domain.NotFound(what)
		}
		return get(r.Context(), id)
	})
}

// act records the act that the operator intends, carries it out, and records a failure of
// it, too.
func (d Deps) act(
	r *ui.Request, cause command.Cause, a command.OperatorAct, do func(context.Context, command.Cause) (domain.Position, error),
) error {
	a.PersonID, a.Reason = r.Person.ID, r.PostFormValue("reason")
	// The actor is the operator, even if the person also has a role in the account.
	cause.Actor = "operator:" + r.Person.ID
	at, err := d.Commands.Act(r.Context(), cause, a, do)
	r.Visible(at)
	return err
}

// names gives the names of people by id. A person without a name is called by the id.
func (d Deps) names(ctx context.Context, ids ...string) (func(id string) string, error) {
	known, err := d.Credentials.Names(ctx, ids...)
	return func(id string) string {
		if name := known[id].Name; name != "" {
			return name
		}
		if id == invariantcheck.ByItself {
			return "the service"
		}
		if user, is := oversight.WhoOnCommandLine(id); is {
			return user + ", on the command line"
		}
		return nameless(id)
	}, err
}
