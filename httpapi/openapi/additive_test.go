package openapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// specified is what the specification shows, by operation: its parameters, the
// fields of the body and those of the answers, in its own order. "result.items[].id"
// is a field of each item; what stands in brackets is expanded. All else in the
// document is additive, and says so.
var specified = map[string]struct{ parameters, body, answer string }{
	"POST /v1/hosted/test": {
		body: "url feature webhookUrl webhookSecret subscribedWebhookEvents priority jobType",
		answer: "jobId projectId status estimatedCompletionMinutes creditsDeducted creditsCharged creditsRemaining checklistItemCount " +
			"jobType isHostedApp regressionItemsIncluded statusUrl reportUrl dashboardReportUrl",
	},
	"POST /v1/hosted/sessions": {
		body: "url slots slots[].(roleLabel targetDevice targetOS targetBrowser targetScreenSize targetNetwork) scenarioBrief " +
			"feature jobType priority webhookUrl subscribedWebhookEvents accessInstructions voiceEnabled",
		answer: "sessionId projectId status checkerCount creditsDeducted creditsCharged creditsRemaining checklistItemCount jobType isHostedApp " +
			"readyDeadline slots slots[].(slot roleLabel jobId targetDevice statusUrl) sessionUrl",
	},
	"GET /v1/hosted/status/{jobId}": {
		parameters: "jobId",
		answer: "jobId status statusMessage progressPercent url jobType checklist checklist.(totalItems checkedItems passedItems failedItems skippedItems) " +
			"result result.(overallStatus passCount failCount skipCount summary items) result.items[].(id description status note)",
	},
	"POST /v1/hosted/prepare-next": {
		body: "projectId fixedBugIds fixedDescriptions", answer: "message regressionItems descriptions projectId",
	},
	"POST /v1/jobs": {
		body: "url title description jobType checklistItems checklistItems[].(description expectedOutcome severity) priority projectId slaMinutes " +
			"credentials credentials.(username password notes) generateChecklist",
		answer: "jobId status estimatedCompletionMinutes creditsDeducted checklistItemCount",
	},
	"GET /v1/jobs": {
		parameters: "status projectId limit offset since",
		answer:     "jobs jobs[].(id status title url jobType createdAt reportId) total limit offset",
	},
	"GET /v1/jobs/{id}": {
		parameters: "id",
		answer:     "id status title url jobType creditsUsed slaMinutes createdAt claimedAt completedAt reportId parentJobId",
	},
	"GET /v1/jobs/{id}/report": {
		parameters: "id",
		answer: "id overallStatus passCount failCount skipCount checkerSummary items items[].(id description status checkerNote screenshotUrl) " +
			"recordingUrl checkerRating createdAt",
	},
	"GET /v1/jobs/{id}/ai-report": {
		parameters: "id",
		answer: "id jobId status executiveSummary healthScore bugs bugs[].(title severity description reproductionSteps suggestedFix) " +
			"passCount failCount skipCount strengths recommendations",
	},
	"POST /v1/jobs/{id}/retest": {parameters: "id", answer: "jobId parentJobId status creditsDeducted"},
	"POST /v1/jobs/bulk": {
		body: "jobs jobs[].(url title description jobType checklistItems priority projectId slaMinutes credentials generateChecklist) " +
			"jobs[].checklistItems[].(description expectedOutcome severity) jobs[].credentials.(username password notes)",
		answer: "batchId jobIds totalCreditsDeducted estimatedCompletionMinutes",
	},
	"GET /v1/jobs/bulk/{batchId}": {
		parameters: "batchId",
		answer:     "batchId overallStatus totalJobs completedJobs passCount failCount jobs jobs[].(id status)",
	},
	"GET /v1/projects": {
		answer: "projects projects[].(id name defaultUrl jobCount passRate webhookSecretRotatedAt webhookSecretRotations createdAt) " +
			"projects[].webhookSecretRotations[].(at userId)",
	},
	"POST /v1/projects": {
		body:   "name description defaultUrl defaultJobType defaultSlaMinutes webhookUrl subscribedWebhookEvents",
		answer: "projectId name deployHookUrl",
	},
	"PATCH /v1/projects/{id}": {
		parameters: "id",
		body:       "name description defaultUrl defaultJobType defaultSlaMinutes webhookUrl subscribedWebhookEvents",
		answer: "projectId name description defaultUrl defaultJobType defaultSlaMinutes webhookUrl webhookSecretRotatedAt webhookSecretRotations " +
			"webhookSecretRotations[].(at userId) subscribedWebhookEvents updatedAt",
	},
	"GET /v1/projects/{id}/history": {
		parameters: "id",
		answer: "projectId projectName totalTests passCount failCount passRate averageHealthScore latestFailures latestFailures[].(id description severity) " +
			"regressions trend trend[].(jobId overallStatus healthScore passCount failCount testedAt) " +
			"preparedRegressions preparedRegressions[].(bugIds descriptions preparedAt)",
	},
	"GET /v1/credits": {answer: "available used total expiringCredits expiringCredits[].(amount expiresAt)"},
}

// shownStatuses are the specification's: its success codes and "Errors".
var shownStatuses = strings.Fields("200 201 202 400 401 402 403 404 409 413 429 500")

// shownHeaders are the request headers that the specification shows.
var shownHeaders = []string{"x-request-id"}

// The webhooks' fields, by kind of event.
const (
	envelopeFields = "event type timestamp projectId data data.projectId"
	aboutJob       = envelopeFields + " jobId dashboardReportUrl data.(jobId dashboardReportUrl)"
)

var specifiedHooks = map[string]string{
	"job.created": aboutJob, "job.claimed": aboutJob, "job.failed_sla": aboutJob, "job.cancelled": aboutJob, "job.ai_report_ready": aboutJob,
	"job.completed": aboutJob + " data.(reportId overallStatus passCount failCount skipCount summary aiReport title url status jobType overallScore " +
		"criticalIssues majorIssues minorIssues completedAt checklist) data.checklist[].(description status severity notes) " +
		"data.aiReport.(id status healthScore executiveSummary bugCount bugs strengths recommendations) data.aiReport.bugs[].(title severity suggestedFix)",
	"job.session_ready": envelopeFields, "job.session_completed": envelopeFields,
	"loop_session.ended": envelopeFields + " data.(finalStatus iterations creditsSpent platform projectName finalReportId)",
}

func TestWhatGoesBeyondTheSpecificationSaysSo(t *testing.T) {
	t.Parallel()
	doc := parsed(t)
	seen := map[string]bool{}
	for pattern, item := range doc.at("paths").of {
		for method, op := range doc.follow(item).of {
			name := strings.ToUpper(method) + " " + pattern
			if !slices.Contains([]string{"get", "head", "post", "put", "patch", "delete"}, method) {
				continue
			}
			want, ok := specified[name]
			seen[name] = true
			if marked := doc.marked(op); marked == ok {
				t.Errorf("%s: additive is %v", name, marked)
			}
			if !ok {
				continue
			}
			parameters, headers := map[string]bool{}, map[string]bool{}
			for _, list := range []any{doc.follow(item).of["parameters"], doc.follow(op).of["parameters"]} {
				all, _ := list.([]any)
				for _, p := range all {
					of := doc.follow(p).of
					if of["in"] == "header" {
						headers[of["name"].(string)] = doc.marked(p)
					} else {
						parameters[of["name"].(string)] = doc.marked(p)
					}
				}
			}
			compare(t, name+": parameter", parameters, fields(want.parameters))
			compare(t, name+": header", headers, shownHeaders)
			body, answer, statuses := map[string]bool{}, map[string]bool{}, map[string]bool{}
			doc.fields(doc.json(doc.follow(op).of["requestBody"]), "", false, body)
			compare(t, name+": body", body, fields(want.body))
			for status, response := range doc.follow(doc.follow(op).of["responses"]).of {
				statuses[status] = doc.marked(response)
				if status == "200" || status == "201" {
					doc.fields(doc.json(response), "", doc.marked(response), answer)
				}
			}
			compare(t, name+": answer", answer, fields(want.answer))
			for status, marked := range statuses {
				if marked == slices.Contains(shownStatuses, status) {
					t.Errorf("%s: additive of the status %s is %v", name, status, marked)
				}
			}
		}
	}
	for name := range specified {
		if !seen[name] {
			t.Errorf("%s is specified and not in the document", name)
		}
	}
}

func TestWhatWebhooksHaveBeyondTheSpecificationSaysSo(t *testing.T) {
	t.Parallel()
	doc := parsed(t)
	for event, item := range doc.at("x-webhooks").of {
		post := doc.follow(doc.follow(item).of["post"])
		want, ok := specifiedHooks[event]
		if marked := doc.marked(post.of); marked == ok {
			t.Errorf("%s: additive is %v", event, marked)
		}
		if !ok {
			continue
		}
		got := map[string]bool{}
		doc.fields(doc.json(post.of["requestBody"]), "", false, got)
		compare(t, event, got, fields(want))
	}
}

// compare wants the specified fields there and unmarked, all others marked.
func compare(t *testing.T, what string, got map[string]bool, want []string) {
	t.Helper()
	for _, name := range want {
		if marked, ok := got[name]; marked || !ok && !slices.Contains(shownHeaders, name) {
			t.Errorf("%s: %s is specified; it is there: %v, additive: %v", what, name, ok, marked)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !got[name] && !slices.Contains(want, name) {
			t.Errorf("%s: %s is not specified and not marked", what, name)
		}
	}
}

// fields expands "a b.(c d)" to a, b.c and b.d.
func fields(list string) []string {
	var out []string
	prefix := ""
	for _, word := range strings.Fields(list) {
		if before, first, ok := strings.Cut(word, "("); ok {
			prefix, word = before, first
		}
		last := strings.HasSuffix(word, ")")
		out = append(out, prefix+strings.TrimSuffix(word, ")"))
		if last {
			prefix = ""
		}
	}
	return out
}

// tree is a node of the document as JSON; the test reads it raw, because a mark
// may stand on what is referred to.
type tree struct {
	root map[string]any
	of   map[string]any
}

func parsed(t *testing.T) tree {
	t.Helper()
	var root map[string]any
	must.NoError(t, json.Unmarshal(Document(), &root))
	return tree{root, root}
}

func (d tree) at(key string) tree { return d.follow(d.of[key]) }

// follow goes where a node refers to.
func (d tree) follow(node any) tree {
	of, _ := node.(map[string]any)
	if ref, ok := of["$ref"].(string); ok {
		here := any(d.root)
		for _, key := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			here = here.(map[string]any)[key]
		}
		return d.follow(here)
	}
	return tree{d.root, of}
}

// marked says whether a node, or what it refers to, is additive.
func (d tree) marked(node any) bool {
	of := d.follow(node).of
	if of["x-additive"] == true {
		return true
	}
	all, _ := of["allOf"].([]any)
	return slices.ContainsFunc(all, d.marked)
}

func (d tree) json(node any) any {
	return d.follow(d.follow(d.follow(node).of["content"]).of["application/json"]).of["schema"]
}

// fields collects the paths of a schema's fields. What lies below a marked one
// goes with it.
func (d tree) fields(schema any, prefix string, above bool, into map[string]bool) {
	of := d.follow(schema).of
	all, _ := of["allOf"].([]any)
	for _, one := range all {
		d.fields(one, prefix, above, into)
	}
	if items, ok := of["items"]; ok {
		d.fields(items, strings.TrimSuffix(prefix, ".")+"[].", above, into)
	}
	properties, _ := of["properties"].(map[string]any)
	for name, property := range properties {
		marked := above || d.marked(property)
		into[prefix+name] = marked
		if !marked {
			d.fields(property, prefix+name+".", marked, into)
		}
	}
}
