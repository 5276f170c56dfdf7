package workbench_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"mime/multipart"
	"os"
	"regexp"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/workbench"
	"humanqa/internal/testing/pagetest"
)

func TestMain(m *testing.M) { os.Exit(pagetest.Main(m)) }

// world is the running service with the workbench.
type world struct{ *pagetest.Service }

type guest = pagetest.Guest

var shared = pagetest.Shared{Pages: pages}

// setup is for tests that name the jobs and the checkers they look at.
func setup(t *testing.T) world {
	t.Helper()
	return world{shared.In(t)}
}

// own is for tests that look at the queue, which shows all that wait, or that take the
// service away.
func own(t *testing.T) world {
	t.Helper()
	return world{pagetest.Start(t, pages)}
}

func pages(s *pagetest.Service) ([]fs.FS, []ui.Page) {
	return []fs.FS{workbench.Templates}, workbench.Pages(workbench.Deps{Commands: s.Commands, Reads: s.Reads, Evidence: s.Evidence, Now: time.Now})
}

// secret is what no page may hold before it is asked for.
const secret = "correct-horse-battery"

// test submits a job with so many items, and a login.
func (w world) test(accountID, title string, items int, change ...func(*command.SubmitJob)) string {
	w.T.Helper()
	in := command.SubmitJob{
		Submission: job.Submission{
			URL: "https://shop.example.com/checkout", Title: title, Type: job.PaymentFlow, TypeEcho: "Payment Flow", Source: "api",
			Description: "Buy the cheapest plan with a test card.\nThen look for the receipt.",
		},
		Credentials: &command.Credentials{Username: "qa@example.com", Password: secret, Notes: "The code is always 1234."},
	}
	levels := []job.Severity{job.Critical, job.Major, job.Minor}
	for n := range items {
		in.Items = append(in.Items, command.NewItem{
			Description: fmt.Sprintf("Step %d of the checkout works", n+1), ExpectedOutcome: "It goes on without an error", Severity: levels[n%3],
		})
	}
	for _, c := range change {
		c(&in)
	}
	out, err := w.Commands.SubmitJob(w.T.Context(), pagetest.Client(accountID), in)
	w.Shown(out.Position, err)
	return out.JobID
}

// claimed is a test that the checker has taken.
func (w world) claimed(checkerID, jobID string) command.ClaimedJob {
	w.T.Helper()
	c, err := w.Commands.ClaimJob(w.T.Context(), pagetest.ByChecker(checkerID), checkerID, jobID)
	w.Shown(c.Position, err)
	return c
}

// completes gives every item of the claim the same verdict, and ends it.
func (w world) completes(checkerID string, c command.ClaimedJob, status job.ItemStatus, note string) {
	w.T.Helper()
	claim := command.Claim{CheckerID: checkerID, JobID: c.JobID, Token: c.Token}
	for _, i := range c.Checklist {
		_, at, err := w.Commands.CheckItem(w.T.Context(), pagetest.ByChecker(checkerID), claim, command.CheckItem{ItemID: i.ID, Status: status, Note: note})
		w.Shown(at, err)
	}
	_, at, err := w.Commands.CompleteJob(w.T.Context(), pagetest.ByChecker(checkerID), claim, command.CompleteJob{Summary: "I have seen all of it."})
	w.Shown(at, err)
}

// draft is the live claim of the checker, as the service knows it.
func (w world) draft(checkerID string) command.ClaimedJob {
	w.T.Helper()
	c, held, err := w.Commands.LiveClaim(w.T.Context(), checkerID)
	w.Must(err)
	if !held {
		w.T.Fatal("there is no claim")
	}
	return c
}

// picture is a PNG; each shade another one.
func picture(shade uint8) []byte {
	img := image.NewRGBA(image.Rect(0, 0, 160, 100))
	for x := range 160 {
		for y := range 100 {
			img.Set(x, y, color.RGBA{shade, uint8(x), uint8(y), 255})
		}
	}
	var b bytes.Buffer
	_ = png.Encode(&b, img) // into memory
	return b.Bytes()
}

// uploads sends a picture by the form of an item, without a script.
func (w world) uploads(g guest, path string, token int, content []byte) pagetest.Response {
	w.T.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	part, err := m.CreateFormFile("file", "shot.png")
	w.Must(err)
	_, err = part.Write(content)
	w.Must(err)
	w.Must(m.Close())
	return w.Send(g, "POST", fmt.Sprintf("%s?token=%d&command=%s", path, token, domain.NewCommandID()), &b,
		"Content-Type", m.FormDataContentType(), "Sec-Fetch-Site", "same-origin")
}

var evidenceLinks = regexp.MustCompile(`/workbench/jobs/[0-9a-f-]+/evidence/[0-9a-f-]+`)

func rating(w world, accountID, jobID string, stars int, note string) {
	w.T.Helper()
	w.Shown(w.Commands.RateJob(w.T.Context(), pagetest.Client(accountID), jobID, stars, note))
}
