package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"humanqa/internal/hqa/proof"
)

type verifyCmd struct {
	Proof       string   `arg:"" type:"existingfile" help:"What GET /v1/audit/proof?event=ID answered, or an export of the log."`
	Key         string   `required:"" help:"The log's public key, as humanqa audit key prints it. Get it another way than the proof."`
	Report      string   `type:"existingfile" placeholder:"FILE" help:"A report in JSON that the proof's event, a job.completed, must bear out."`
	Checkpoints []string `name:"checkpoint" type:"existingfile" placeholder:"FILE" help:"Checkpoints that you kept."`
}

// Run works offline and needs no service. Exit 1: something does not hold.
func (c *verifyCmd) Run(a *app) error {
	var found bytes.Buffer
	bad, proved := proof.Check(c.Key, c.Proof, c.Checkpoints, &found)
	if c.Report != "" && bad == 0 {
		raw, err := os.ReadFile(c.Report)
		if err != nil {
			return usage("%w", err)
		}
		if differs := compare(raw, proved); differs != "" {
			bad++
			fmt.Fprintf(&found, "%s: %s\n", c.Report, differs)
		} else {
			fmt.Fprintf(&found, "ok: %s is the report that was signed\n", c.Report)
		}
	}
	told := strings.TrimSpace(found.String())
	if err := a.print(map[string]any{"holds": bad == 0, "findings": strings.Split(told, "\n")}, "%s", told); err != nil {
		return err
	}
	if bad > 0 {
		return verdict(exitFailures)
	}
	return nil
}

// reported is a report as both sides have it: the API, and the event in the log.
type reported struct {
	OverallStatus string
	PassCount     int
	FailCount     int
	SkipCount     int
	Items         []reportedItem
}

type reportedItem struct {
	ID, Description, Severity, Status string
}

// compare says how the report differs from the event; empty: not at all.
func compare(raw []byte, proved *proof.Event) string {
	if proved == nil || proved.Type != "job.completed" || proved.Data == nil {
		return "the proof is not of a job.completed: GET /v1/jobs/ID/events names its id"
	}
	opened, ok := proved.Opened()
	if !ok {
		return "the proof has no texts, or others than those that were signed: an erased test has none"
	}
	var shown, signed struct {
		reported
		ID, JobID, ReportID     string
		CheckerSummary, Summary string
	}
	if err := json.Unmarshal(raw, &shown); err != nil {
		return "it is no report in JSON"
	}
	if err := json.Unmarshal([]byte(opened), &signed); err != nil {
		return "the event's data are no JSON"
	}
	var notes, signedNotes struct {
		Items []struct{ CheckerNote, Note string }
	}
	_, _ = json.Unmarshal(raw, &notes), json.Unmarshal([]byte(opened), &signedNotes) // both were read above
	switch {
	case proved.Stream != "job-"+shown.JobID:
		return "it is of job " + shown.JobID + ", and the proof of " + proved.Stream
	case shown.ID != signed.ReportID:
		return "its id is not that of the signed report"
	case shown.OverallStatus != signed.OverallStatus, shown.PassCount != signed.PassCount, shown.FailCount != signed.FailCount,
		shown.SkipCount != signed.SkipCount:
		return "its verdict is not the signed one"
	case shown.CheckerSummary != signed.Summary:
		return "its summary is not the signed one"
	case len(shown.Items) != len(signed.Items):
		return fmt.Sprintf("it has %d items, and %d were signed", len(shown.Items), len(signed.Items))
	}
	for i, item := range shown.Items {
		if item != signed.Items[i] || notes.Items[i].CheckerNote != signedNotes.Items[i].Note {
			return fmt.Sprintf("item %s is not as it was signed", item.ID)
		}
	}
	return ""
}
