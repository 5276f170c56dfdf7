package input

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/httpapi/wire"
)

// platform is a hosting platform's message about a deployment. Everything else that it
// sends, such as Netlify's access token, is not read.
type platform struct {
	name                        string
	id                          string // of the deployment, not of the delivery
	path, url                   string // url is empty where the platform sends none
	commit, branch, environment string
	ignored                     string // why nothing is tested
}

// command is the deploy to test. Its one key is the deployment's id, so a delivery that is
// repeated, and a second event of the same deployment, find the test of the first.
func (p platform) command(o wire.Object) (in command.Deploy, target Target) {
	in = command.Deploy{Platform: p.name, Test: command.HostedTest{Submission: job.Submission{
		URL: p.url, Commit: clip(p.commit, maxCommitSHA), Branch: clip(p.branch, maxBranch),
		Environment: clip(p.environment, maxEnvironment),
	}}}
	if p.ignored != "" {
		return in, target
	}
	target = CheckTarget(o.Problems, p.path, p.url, "")
	if p.id == "" {
		o.Wrong(p.path, "comes without the id of its deployment")
		return in, target
	}
	in.Keys = []string{project.DeploymentKey + p.name + ":" + p.id}
	return in, target
}

// clip shortens a platform's text to the length of a field.
func clip(text string, limit int) string {
	return strings.TrimSpace(wire.Clip(strings.TrimSpace(text), limit))
}

// bypassParameter is Vercel's own name of the secret that opens a protected deployment.
const bypassParameter = "x-vercel-protection-bypass"

// Bypass reads the secret from the hook's URL, because Vercel lets no header be set. It
// becomes the access instructions: sealed, and shown to the claimant only.
func Bypass(q wire.Query) string {
	secret := clip(q.Text(bypassParameter), maxCredential)
	if secret == "" {
		return ""
	}
	return "Open the address once with ?" + bypassParameter + "=" + url.QueryEscape(secret) +
		"&x-vercel-set-bypass-cookie=true behind it. Then the app is open to this browser."
}

// platformDeploy recognises the body of a platform by its header, or by the shape of the
// body.
func platformDeploy(h http.Header, o wire.Object) (p platform, known bool) {
	kind := peek(o, "type")
	_, payload := o.Field("payload")
	_, deployment := o.Field("deployment")
	_, details := o.Field("details")
	_, webhook := o.Field("webhook_metadata")
	switch {
	case h.Get(githubEvent) != "":
		return github(h.Get(githubEvent), o), true
	case h.Get("X-Gitlab-Event") != "":
		return gitlab(h.Get("X-Gitlab-Event"), o), true
	case h.Get("Heroku-Webhook-Id") != "", webhook && peek(o, "resource") != "":
		return heroku(o), true
	case h.Get("X-Amz-Sns-Message-Type") != "", h.Get("Cf-Webhook-Auth") != "":
		return platform{ignored: "it tells of no address: have the build's last step send {\"url\": …} instead"}, true
	case h.Get("X-Netlify-Event") != "":
		return netlify(o), true
	case payload && (h.Get("X-Vercel-Signature") != "" || strings.HasPrefix(kind, "deployment.")):
		return vercel(kind, o), true
	case strings.EqualFold(kind, "deploy") && deployment, strings.HasPrefix(kind, "Deployment.") && details:
		return railway(kind, o), true
	case h.Get("Webhook-Id") != "" && peek(o.Within("data"), "serviceId") != "":
		return render(kind, o), true
	}
	return p, false
}

// githubEvent is the header that names an event of GitHub.
const githubEvent = "X-GitHub-Event"

// github reads a deployment_status: the environment's URL is the app, the target's URL is
// a log.
func github(event string, o wire.Object) platform {
	p := platform{name: "github", path: "deployment_status.environment_url"}
	if event != "deployment_status" {
		p.ignored = "the event " + clip(event, wire.MaxWord) + " is no deployment_status"
		return p
	}
	status, deployed := o.Within("deployment_status"), o.Within("deployment")
	if state := peek(status, "state"); state != "success" {
		p.ignored = "the deployment is " + state + ", not success"
		return p
	}
	p.id, p.url = id(deployed), peek(status, "environment_url")
	p.commit, p.branch, p.environment = peek(deployed, "sha"), peek(deployed, "ref"), peek(deployed, "environment")
	if p.branch == p.commit { // a deployment of a commit names it twice
		p.branch = ""
	}
	return p
}

// vercel reads deployment.succeeded and deployment.ready: they are one deployment. The
// URL comes without its scheme.
func vercel(kind string, o wire.Object) platform {
	p := platform{name: "vercel", path: "payload.deployment.url"}
	if kind != "deployment.succeeded" && kind != "deployment.ready" {
		p.ignored = "the event " + clip(kind, wire.MaxWord) + " tells of no deployment that can be tested"
		return p
	}
	payload := o.Within("payload")
	deployed := payload.Within("deployment")
	meta := deployed.Within("meta")
	p.id, p.url = id(deployed), peek(deployed, "url")
	if p.url != "" && !strings.Contains(p.url, "://") {
		p.url = "https://" + p.url
	}
	for _, from := range []string{"github", "gitlab", "bitbucket"} {
		if p.commit == "" {
			p.commit, p.branch = peek(meta, from+"CommitSha"), peek(meta, from+"CommitRef")
		}
	}
	p.environment = cmp.Or(peek(payload, "target"), "preview")
	return p
}

// netlify reads a deploy: deploy_ssl_url is the deploy's own address.
func netlify(o wire.Object) platform {
	p := platform{name: "netlify", path: "deploy_ssl_url", id: peek(o, "id"), url: peek(o, "deploy_ssl_url")}
	if state := peek(o, "state"); state != "ready" {
		p.ignored = "the deploy is " + clip(state, wire.MaxWord) + ", not ready"
		return p
	}
	p.url = cmp.Or(p.url, peek(o, "ssl_url"))
	p.commit, p.branch, p.environment = peek(o, "commit_ref"), peek(o, "branch"), peek(o, "context")
	return p
}

// render reads deploy_ended. It has no URL and no commit, and no id but that of its
// event.
func render(kind string, o wire.Object) platform {
	data := o.Within("data")
	p := platform{name: "render", path: "url", id: id(data)}
	if status := peek(data, "status"); kind != "deploy_ended" || status != "succeeded" {
		p.ignored = strings.TrimSpace("the event " + clip(kind+" "+status, wire.MaxWord) + " is no deploy that succeeded")
	}
	return p
}

// railway reads both forms of a deployment's status. Neither has a URL.
func railway(kind string, o wire.Object) platform {
	p := platform{name: "railway", path: "url"}
	deployed, environment, status := o.Within("deployment"), o.Within("environment"), peek(o, "status")
	meta := deployed.Within("meta")
	if details := o.Within("details"); strings.HasPrefix(kind, "Deployment.") {
		resource := o.Within("resource")
		deployed, environment = resource.Within("deployment"), resource.Within("environment")
		meta, status = details, peek(details, "status")
		p.id = id(details)
	}
	if !strings.EqualFold(status, "SUCCESS") {
		p.ignored = "the deployment is " + clip(status, wire.MaxWord) + ", not SUCCESS"
		return p
	}
	p.id = cmp.Or(id(deployed), p.id)
	p.commit, p.branch, p.environment = peek(meta, "commitHash"), peek(meta, "branch"), peek(environment, "name")
	return p
}

// gitlab reads a deployment event.
func gitlab(event string, o wire.Object) platform {
	p := platform{name: "gitlab", path: "environment_external_url", url: peek(o, "environment_external_url")}
	if status := peek(o, "status"); event != "Deployment Hook" || status != "success" {
		p.ignored = strings.TrimSpace("the event " + clip(event+" "+status, wire.MaxWord) + " is no deployment that succeeded")
		return p
	}
	p.id = clip(o.PeekScalar("deployment_id"), maxDeduplicationKey)
	commit := peek(o, "commit_url") // its end is the whole hash
	p.commit = cmp.Or(commit[strings.LastIndexByte(commit, '/')+1:], peek(o, "short_sha"))
	p.branch, p.environment = peek(o, "ref"), peek(o, "environment")
	return p
}

// heroku reads a release's webhook. It has the app's address only where Heroku sends it.
func heroku(o wire.Object) platform {
	data := o.Within("data")
	p := platform{name: "heroku", path: "data.app.web_url", id: id(data), url: peek(data.Within("app"), "web_url")}
	if told := peek(o, "resource") + " " + peek(o, "action") + " " + peek(data, "status"); told != "release update succeeded" {
		p.ignored = "the event " + clip(told, wire.MaxWord) + " is no release that succeeded"
	}
	p.commit = peek(data.Within("slug"), "commit")
	return p
}

// peek and id read leniently, as Within does: a platform defines its body, so nothing in it
// is refused.
func peek(o wire.Object, name string) string { return clip(o.Peek(name), MaxURL) }

func id(o wire.Object) string { return clip(o.PeekScalar("id"), maxDeduplicationKey) }
