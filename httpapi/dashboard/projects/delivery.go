package projects

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/httpapi/ui"
	"humanqa/internal/signature"
	"humanqa/projections/projects"
	"humanqa/webhooks"
)

type deliveryView struct {
	webhooks.DeliveryDetail
	Chip     ui.State
	Project  projects.Project
	Test     string        // as in the list
	Attempts []attemptLine // the newest first
	Body     string        // the exact bytes
	Readable string        // the same, indented
	Headers  []signature.Header
	Curl     string
	Signed   bool // an attempt was signed: its signatures can be verified
	Latest   webhooks.Attempt
	Stamp    string // webhook-timestamp of the latest attempt
}

type attemptLine struct {
	webhooks.Attempt
	Chip    ui.State
	Why     string // the error, unless the status says it
	Headers []signature.Header
}

func (d Deps) getDelivery(ctx context.Context, accountID, id string) (webhooks.DeliveryDetail, error) {
	known, err := uuid.Parse(id)
	if err != nil {
		return webhooks.DeliveryDetail{}, domain.NotFound("delivery")
	}
	return d.Deliveries.Delivery(ctx, accountID, "", known)
}

func (d Deps) delivery(r *ui.Request, w webhooks.DeliveryDetail) (_ ui.Answer, err error) {
	v := deliveryView{DeliveryDetail: w, Chip: lineOfDelivery(w.Delivery).Chip, Body: string(w.Body)}
	if v.Project, err = d.Reads.Projects.Get(r.Context(), w.AccountID, w.ProjectID); err != nil {
		return ui.Answer{}, err
	}
	named := []deliveryLine{{Delivery: w.Delivery}}
	if err := d.nameTests(r.Context(), w.AccountID, named); err != nil {
		return ui.Answer{}, err
	}
	v.Test, v.Headers = named[0].Test, w.Headers(webhooks.Attempt{})
	for _, a := range w.Attempts {
		line := attemptLine{Attempt: a, Chip: ui.NewState("Arrived", "pass", "check"), Headers: w.Headers(a)}
		if a.Error != "" {
			line.Chip = ui.NewState("Failed", "fail", "cross")
			if a.Error != fmt.Sprintf("answered %d", a.Status.Int64) {
				line.Why = a.Error
			}
		}
		if a.Signature != "" {
			v.Latest, v.Signed = a, true
		}
		v.Headers = line.Headers
		v.Attempts = append(v.Attempts, line)
	}
	slices.Reverse(v.Attempts)
	for _, h := range w.Headers(v.Latest) {
		if h.Name == "webhook-timestamp" {
			v.Stamp = h.Value
		}
	}
	var readable bytes.Buffer
	if json.Indent(&readable, w.Body, "", "  ") == nil { // the service made the body as JSON
		v.Readable = readable.String()
	}
	v.Curl = curlOf(v.Project.WebhookURL, v.Headers, v.Body)
	return ui.Show("delivery", w.Event, v, domain.ProjectStream(w.ProjectID)), nil
}

// curlOf is the delivery as a command of a shell, byte for byte. It uses --data-raw, which
// gives no first character a meaning.
func curlOf(url string, headers []signature.Header, body string) string {
	var b strings.Builder
	b.WriteString("curl -X POST " + ui.ShellWord(url))
	for _, h := range headers {
		b.WriteString(" \\\n  -H " + ui.ShellWord(h.Name+": "+h.Value))
	}
	b.WriteString(" \\\n  --data-raw " + ui.ShellWord(body))
	return b.String()
}

func (d Deps) redeliver(r *ui.Request, w webhooks.DeliveryDetail) (ui.Answer, error) {
	d.Fresh.Webhooks(r.Context())
	err := d.Deliveries.Redeliver(r.Context(), w.AccountID, w.ProjectID, w.ID)
	return ui.Go("/dashboard/deliveries/" + w.ID.String()), err
}
