package projects

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
)

func TestADeployHookLeadsToItsProject(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	w.Log.Record(domain.AccountStream("acc"), &account.Created{Name: "a", Sandbox: true})
	w.Log.Record(domain.ProjectStream("p1"), &project.Created{AccountID: "acc", Name: "shop", HookHash: "h1", At: modeltest.Noon})
	find := func(hash string) (HookTarget, bool) {
		t.Helper()
		w.Reach(w.Sup)
		target, found, err := w.reads.ByHook(w.Ctx(), hash)
		must.NoError(t, err)
		return target, found
	}
	if target, found := find("h1"); !found || target != (HookTarget{AccountID: "acc", ProjectID: "p1", Sandbox: true}) {
		t.Errorf("got %+v, %v", target, found)
	}
	w.Log.Record(domain.AccountStream("acc"), &account.Suspended{})
	if target, _ := find("h1"); !target.Suspended {
		t.Error("the suspension is not seen")
	}
	if target, found := find("h2"); found {
		t.Errorf("an unknown hash leads to %+v", target)
	}
}

// Decisions, "List order": createdAt descending, then id descending.
func TestProjectsOfOneInstantAreListedByTheirIDs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	for _, id := range []string{"pb", "pd", "pa", "pc"} {
		w.Log.Record(domain.ProjectStream(id), &project.Created{AccountID: "acc", Name: id, HookHash: id, At: modeltest.Noon})
	}
	w.Log.Record(domain.ProjectStream("p0"), &project.Created{AccountID: "acc", Name: "younger", HookHash: "h0", At: *modeltest.At(1)})
	w.Reach(w.Sup)
	list, _, err := w.reads.List(w.Ctx(), "acc", Filter{Limit: 10})
	must.NoError(t, err)
	var ids []string
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	if got := strings.Join(ids, " "); got != "p0 pd pc pb pa" {
		t.Errorf("the list is %s", got)
	}
}

func TestAProjectAsItsClientSeesIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	text := func(s string) *string { return &s }
	sla := 30
	stream := domain.ProjectStream("p1")
	read := func() Project {
		t.Helper()
		w.Reach(w.Sup)
		p, err := w.reads.Get(w.Ctx(), "acc", "p1")
		must.NoError(t, err)
		return p
	}
	w.Log.Record(stream, &project.Created{AccountID: "acc", Name: "shop", Description: text("d"), HookHash: "h1", At: modeltest.Noon})
	want := Project{ID: "p1", AccountID: "acc", Name: "shop", Description: text("d"), CreatedAt: modeltest.Noon, UpdatedAt: modeltest.Noon}
	modeltest.Same(t, read(), want)

	w.Log.Record(stream,
		&project.SettingsChanged{Name: "shop 2", DefaultURL: text("https://a.example"), DefaultJobType: text("Custom"), DefaultSLAMinutes: &sla, At: *modeltest.At(1)},
		&project.SecretSet{SecretID: "s1", Sealed: "sealed", At: *modeltest.At(2)},
		&project.WebhookSet{URL: "https://hook.example", At: *modeltest.At(2)},
		&project.WebhookHeadersSet{Headers: []project.OwnHeader{{Name: "X-Env", Sealed: "sealed"}}, Origin: "https://hook.example", At: *modeltest.At(2)})
	want.Name, want.Description, want.DefaultURL = "shop 2", nil, text("https://a.example")
	want.DefaultJobType, want.DefaultSLAMinutes, want.UpdatedAt = text("Custom"), &sla, *modeltest.At(2)
	want.WebhookURL, want.SecretRotations, want.HeaderNames = "https://hook.example", []project.Rotation{}, []string{"X-Env"}
	modeltest.Same(t, read(), want)

	for i := range 7 {
		w.Log.Record(stream, &project.SecretSet{SecretID: fmt.Sprint("s", i), Sealed: "sealed", Rotated: true, At: *modeltest.At(10 + i), UserID: text(fmt.Sprint("u", i))})
	}
	w.Log.Record(stream, &project.WebhookSet{URL: "https://hook.example", Events: &[]string{}, At: *modeltest.At(20)},
		&project.WebhookDisabled{DeliveryID: "d1", Reason: "HTTP 500", At: *modeltest.At(21)})
	want.SecretRotations = nil
	for i := 6; i > 1; i-- {
		want.SecretRotations = append(want.SecretRotations, project.Rotation{At: *modeltest.At(10 + i), UserID: text(fmt.Sprint("u", i)), SecretID: fmt.Sprint("s", i)})
	}
	want.SecretRotatedAt, want.Events, want.UpdatedAt = modeltest.At(16), &[]string{}, *modeltest.At(21)
	want.WebhookDisabled, want.DisabledReason = true, "HTTP 500"
	modeltest.Same(t, read(), want)

	w.Log.Record(stream, &project.WebhookCleared{At: *modeltest.At(22)})
	want.WebhookURL, want.Events, want.SecretRotations, want.HeaderNames = "", nil, nil, nil
	want.WebhookDisabled, want.DisabledReason, want.UpdatedAt = false, "", *modeltest.At(22)
	modeltest.Same(t, read(), want)

	for i, overall := range []string{"pass", "pass", "fail", "pass"} {
		w.Log.Record(domain.JobStream(fmt.Sprint("j", i)), modeltest.Created("acc", func(e *job.Created) { e.ProjectID = "p1" }), modeltest.Claimed("ann"), modeltest.Completed(overall))
	}
	w.Log.Record(domain.JobStream("running"), modeltest.Created("acc", func(e *job.Created) { e.ProjectID = "p1" }))
	want.JobCount, want.CompletedCount, want.PassRate = 5, 4, 0.75
	modeltest.Same(t, read(), want)

	w.Log.Record(domain.ProjectStream("p0"), &project.Created{AccountID: "acc", Name: "older", HookHash: "h0", At: *modeltest.At(-1)})
	w.Log.Record(domain.ProjectStream("px"), &project.Created{AccountID: "other", Name: "theirs", HookHash: "hx", At: modeltest.Noon})
	w.Reach(w.Sup)
	list, total, err := w.reads.List(w.Ctx(), "acc", Filter{Limit: 10})
	must.NoError(t, err)
	modeltest.Same(t, total, 2)
	modeltest.Same(t, list, []Project{want, {ID: "p0", AccountID: "acc", Name: "older", CreatedAt: *modeltest.At(-1), UpdatedAt: *modeltest.At(-1)}})
	if _, err := w.reads.Get(w.Ctx(), "acc", "px"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("another account's project: %v", err)
	}
	if n := w.Count("SELECT COUNT(*) FROM readmodel.projects p WHERE p::text LIKE '%sealed%'"); n > 0 {
		t.Error("a secret reached the read model")
	}
	w.Sound(w.Sup, "projects")
}

// A host of invisible characters was let through once; its event is in the log
// for good.
func TestAHostThatNoIndexHoldsStopsNoProjection(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	r := rand.New(rand.NewPCG(1, 2))
	var host strings.Builder
	for range 1990 {
		host.WriteRune(0xe0100 + r.Int32N(0xf0))
	}
	url := "https://" + host.String() + "shop.example.com"
	w.Log.Record("project-p", &project.Created{AccountID: "acc", Name: "P", DefaultURL: &url, At: modeltest.Noon})
	w.Reach(w.Sup)
	got, err := w.reads.Get(w.Ctx(), "acc", "p")
	if err != nil || got.DefaultURL == nil || *got.DefaultURL != url {
		t.Errorf("the project is %+v, %v", got, err)
	}
}

const manyProjectsSQL = `
INSERT INTO {projects}.projects (id, account_id, name, default_url, default_host, hook_hash, webhook_url, disabled, disabled_by, disabled_reason, rotations, created_at, updated_at)
SELECT 'p' || n, 'acc' || (n % 3), 'n', 'https://a.example', CASE WHEN n % 4 = 0 THEN '' ELSE 'h' || (n % 40) END, 'hash' || n, '', false, '', '', '[]', now() - n * interval '1 second', now()
FROM generate_series(1, 6000) n;
INSERT INTO {access}.accounts
SELECT 'acc' || n, 'a', false, false
FROM generate_series(0, 2000) n;
ANALYZE;`

func TestAProjectIsFoundThroughIndexes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Exec(manyProjectsSQL)
	w.Walks("project of a host", projectForHostSQL, []any{"acc1", "h7"}, "projects_by_host")
	w.Walks("deploy hook", byHookSQL, []any{"hash7"}, "projects_hook_hash_key", "accounts_pkey")
}

func TestAProjectIsFoundByItsNameAndItsHostInAnySpelling(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	url := "https://Bu\u0308cher.example/shop"
	w.Log.Record(domain.ProjectStream("p1"), &project.Created{AccountID: "acc", Name: "Gr\u00f6\u00dfe", DefaultURL: &url, HookHash: "h", At: modeltest.Noon})
	w.Reach(w.Sup)
	for _, part := range []string{"GRO\u0308SSE", "\u00f6\u200bss", ""} {
		if found, err := w.reads.Named(w.Ctx(), "acc", part, 5); err != nil || len(found) != 1 {
			t.Errorf("%+q finds %v, %v", part, found, err)
		}
	}
	if id, _, err := w.reads.ForHost(w.Ctx(), "acc", "xn--bcher-kva.example"); err != nil || id != "p1" {
		t.Errorf("the host's project is %q, %v", id, err)
	}
}
