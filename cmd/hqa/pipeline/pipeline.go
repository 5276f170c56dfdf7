// Package pipeline knows the run of a pipeline that hqa is a step of. A step that is
// repeated in the same run sends the same Idempotency-Keys, and so pays once.
package pipeline

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Run is a step of a pipeline's run; the zero Run is none.
type Run struct {
	Provider string
	parts    []string
	attempt  string
}

// Find reads the environment. HQA_RUN_ID (with HQA_STEP) wins over what a provider sets,
// for pipelines that are not known here.
//
// A provider's attempt is no part of the step: "re-run the job" finds the test that the
// first attempt paid for. again makes it one, so that each attempt pays for its own test.
func Find(get func(string) string, again bool) Run {
	var r Run
	switch {
	case get("HQA_RUN_ID") != "":
		r = Run{"generic", []string{get("HQA_RUN_ID"), get("HQA_STEP")}, get("HQA_ATTEMPT")}
	case get("GITHUB_ACTIONS") == "true" && get("GITHUB_RUN_ID") != "":
		r = Run{"github", []string{
			get("GITHUB_SERVER_URL"), get("GITHUB_REPOSITORY"), get("GITHUB_RUN_ID"), get("GITHUB_JOB"), get("GITHUB_ACTION"),
		}, get("GITHUB_RUN_ATTEMPT")}
	case get("GITLAB_CI") == "true" && get("CI_PIPELINE_ID") != "":
		// A retry of the job has a new CI_JOB_ID under the same name.
		r = Run{"gitlab", []string{
			get("CI_SERVER_URL"), get("CI_PROJECT_ID"), get("CI_PIPELINE_ID"), get("CI_JOB_NAME"), get("CI_NODE_INDEX"),
		}, get("CI_JOB_ID")}
	}
	switch {
	case !again:
		r.attempt = ""
	case r.attempt == "": // every call is an attempt of its own
		r.attempt = rand.Text()
	}
	return r
}

// Known says that hqa runs in a pipeline.
func (r Run) Known() bool { return r.Provider != "" }

// Key is the Idempotency-Key of a submission of this step: the same for the same call and
// body, so that a changed test is a new one.
func (r Run) Key(call string, body []byte) string {
	all := strings.Join(append(append([]string{r.Provider, r.attempt}, r.parts...), call, string(body)), "\x00")
	sum := sha256.Sum256([]byte(all))
	return "hqa-" + hex.EncodeToString(sum[:16])
}
