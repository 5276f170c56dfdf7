package ai

import (
	"context"
	"crypto/tls"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/fence"
)

// The limits that a page should keep to, as catalogue.yaml names them.
const (
	goodRedirects = 2
	goodTime      = 3 * time.Second
	goodSize      = 2 << 20
	goodTitle     = 100
	goodExpiry    = 14 // days
	shownOf       = 5  // examples in a note
)

// Reasons of a skip (decisions, "Item status").
const (
	blocked       = "blocked"
	notApplicable = "not_applicable"
	outOfTime     = "out_of_time"
)

// finding is the result of one check: a skip has a reason.
type finding struct {
	status job.ItemStatus
	reason string
	note   string
}

func passes(format string, args ...any) finding {
	return finding{status: job.ItemPass, note: fmt.Sprintf(format, args...)}
}

func fails(format string, args ...any) finding {
	return finding{status: job.ItemFail, note: fmt.Sprintf(format, args...)}
}

func skips(reason, format string, args ...any) finding {
	return finding{status: job.ItemSkip, reason: reason, note: fmt.Sprintf(format, args...)}
}

// passIf passes or fails.
func passIf(ok bool, format string, args ...any) finding {
	if ok {
		return passes(format, args...)
	}
	return fails(format, args...)
}

// reviewed is the input of the checks.
type reviewed struct {
	fetched
	err   error // why there is no answer
	page  page
	links []linkState
	now   time.Time
}

// check is one line of every review.
type check struct {
	Key, Topic string
	item       `yaml:",inline"`
	Fix        string
	Needs      need
}

// need is the input without which a check cannot run; empty: it needs none.
type need string

const (
	needsTLS  need = "TLS"
	needsPage need = "page" // in HTML, with a status of success
)

// judges give the results of the checks, by their keys.
var judges = map[string]func(reviewed) finding{
	job.AnswersKey:         reviewed.answers,
	"review-https":         reviewed.https,
	"review-tls-version":   reviewed.tlsVersion,
	"review-certificate":   reviewed.certificate,
	"review-redirects":     reviewed.redirects,
	"review-response-time": reviewed.responseTime,
	"review-size":          reviewed.size,
	"review-title":         reviewed.title,
	"review-viewport":      reviewed.viewport,
	"review-language":      reviewed.language,
	"review-main-heading":  reviewed.mainHeading,
	"review-heading-order": reviewed.headingOrder,
	"review-image-texts":   reviewed.imageTexts,
	"review-field-labels":  reviewed.fieldLabels,
	"review-links":         reviewed.deadLinks,
	"review-mixed-content": reviewed.mixedContent,
}

// Review implements command.AI. A page that cannot be reached is a report too.
func (r *Rules) Review(ctx context.Context, url string) (command.Review, error) {
	seen := r.pages.review(ctx, url)
	if err := ctx.Err(); err != nil {
		return command.Review{}, fmt.Errorf("review a page: %w", err)
	}
	review := command.Review{Items: make([]job.ReportItem, len(catalogue.Review)), By: byRules}
	for i, c := range catalogue.Review {
		v := seen.runCheck(c)
		review.Items[i] = job.ReportItem{
			Item: job.Item{
				ID: fmt.Sprintf("item-%d", i+1), Key: c.Key,
				Description: c.Description, ExpectedOutcome: c.Expected, Severity: c.Severity,
			},
			Status: v.status, Reason: v.reason, Note: fence.Clean(v.note, maxNote),
		}
	}
	b := command.AnalysisBrief{Submission: job.Submission{Type: job.AIReview, URL: url}, Report: job.Completed{Items: review.Items}}
	review.Summary = fence.Clean(headline(b)+" "+worst(review.Items, bugs(b)), maxSummary)
	return review, nil
}

// review fetches the page and its links within one time limit.
func (f fetcher) review(ctx context.Context, url string) reviewed {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	client, done := f.client()
	defer done()

	var seen reviewed
	seen.fetched, seen.err = f.fetchPage(ctx, client, url)
	seen.now = time.Now()
	if seen.hasPage() {
		seen.page = readPage(seen.body, seen.contentType)
		seen.links = f.checkLinks(ctx, client, seen.page.sameSite(seen.way.last(), maxLinks))
	}
	return seen
}

func (r reviewed) succeeded() bool { return r.err == nil && r.status/100 == 2 }

func (r reviewed) hasPage() bool { return r.succeeded() && r.isHTML() }

func (r reviewed) isHTML() bool {
	kind := r.contentType
	if kind == "" {
		kind = http.DetectContentType(r.body)
	}
	media, _, _ := mime.ParseMediaType(kind)
	return media == "text/html" || media == "application/xhtml+xml"
}

func (r reviewed) runCheck(c check) finding {
	switch {
	case c.Needs == "":
	case r.err != nil:
		return skips(blocked, "The page could not be reached.")
	case c.Needs == needsTLS && r.tls == nil:
		return skips(notApplicable, "The page is not served over HTTPS.")
	case c.Needs == needsPage && !r.succeeded():
		return skips(blocked, "The answer is not the page but status %d.", r.status)
	case c.Needs == needsPage && !r.isHTML():
		return skips(notApplicable, "The answer is not an HTML page but %q.", fence.Clean(r.contentType, maxQuote))
	}
	return judges[c.Key](r)
}

func (r reviewed) answers() finding {
	if r.err != nil {
		return fails("The page cannot be reached: %s.", why(r.err))
	}
	return passIf(r.succeeded(), "Status %d at %s.", r.status, shown(r.way.last().String()))
}

func (r reviewed) https() finding {
	first, last := r.way[0], r.way.last()
	for i, u := range r.way[1:] {
		if u.Scheme == "http" && r.way[i].Scheme == "https" {
			return fails("%s redirects from HTTPS to %s.", shown(r.way[i].String()), shown(u.String()))
		}
	}
	switch {
	case last.Scheme != "https":
		return fails("The page is served without TLS, at %s.", shown(last.String()))
	case first.Scheme != "https":
		return passes("The http address leads to %s.", shown(last.String()))
	}
	return passes("The page is served at %s.", shown(last.String()))
}

func (r reviewed) tlsVersion() finding {
	return passIf(r.tls.Version >= tls.VersionTLS12, "%s.", tls.VersionName(r.tls.Version))
}

func (r reviewed) certificate() finding {
	if len(r.tls.PeerCertificates) == 0 {
		return fails("There is no certificate.")
	}
	ends := r.tls.PeerCertificates[0].NotAfter.UTC()
	days := int(ends.Sub(r.now).Hours() / 24)
	return passIf(days >= goodExpiry, "It ends on %s, in %s.", ends.Format(time.DateOnly), counted(days, "day"))
}

func (r reviewed) redirects() finding {
	n := len(r.way) - 1
	return passIf(n <= goodRedirects, "%s.", counted(n, "redirect"))
}

func (r reviewed) responseTime() finding {
	return passIf(r.firstByte <= goodTime, "%d ms.", r.firstByte.Milliseconds())
}

func (r reviewed) size() finding {
	switch {
	case r.cut:
		return fails("More than %d MiB; only that much was read.", maxPage>>20)
	case r.cutBy != nil:
		return fails("The page broke off after %d KiB.", len(r.body)>>10)
	}
	return passIf(len(r.body) <= goodSize, "%d KiB.", (len(r.body)+1023)>>10)
}

func (r reviewed) title() finding {
	n := len([]rune(r.page.title))
	switch {
	case n == 0:
		return fails("There is no title.")
	case n > goodTitle:
		return fails("%d characters: %s.", n, quote(r.page.title))
	}
	return passes("%s.", quote(r.page.title))
}

func (r reviewed) viewport() finding {
	if r.page.viewport == "" {
		return fails("There is no meta viewport.")
	}
	ok := strings.Contains(strings.ToLower(strings.ReplaceAll(r.page.viewport, " ", "")), "width=device-width")
	return passIf(ok, "%s.", quote(r.page.viewport))
}

func (r reviewed) language() finding {
	if r.page.lang == "" {
		return fails("The html element has no lang attribute.")
	}
	return passes("%s.", quote(r.page.lang))
}

func (r reviewed) mainHeading() finding {
	n := 0
	for _, level := range r.page.headings {
		if level == 1 {
			n++
		}
	}
	return passIf(n == 1, "%s of level 1 among %s.", counted(n, "heading"), counted(len(r.page.headings), "heading"))
}

func (r reviewed) headingOrder() finding {
	if len(r.page.headings) == 0 {
		return skips(notApplicable, "The page has no headings.")
	}
	before := r.page.headings[0]
	for _, level := range r.page.headings[1:] {
		if level > before+1 {
			return fails("An h%d follows an h%d.", level, before)
		}
		before = level
	}
	return passes("%s in order.", counted(len(r.page.headings), "heading"))
}

func (r reviewed) imageTexts() finding {
	if r.page.images == 0 {
		return skips(notApplicable, "The page has no images.")
	}
	return passIf(len(r.page.noAlt) == 0, "%d of %s without alt%s", len(r.page.noAlt), counted(r.page.images, "image"),
		examples(r.page.noAlt))
}

func (r reviewed) fieldLabels() finding {
	if r.page.fields == 0 {
		return skips(notApplicable, "The page has no form fields.")
	}
	return passIf(len(r.page.unlabeled) == 0, "%d of %s without a label%s", len(r.page.unlabeled), counted(r.page.fields, "field"),
		examples(r.page.unlabeled))
}

func (r reviewed) deadLinks() finding {
	var asked int
	var broken []string
	for _, l := range r.links {
		if l.asked {
			asked++
		}
		if l.broken != "" {
			broken = append(broken, fmt.Sprintf("%s (%s)", l.url, l.broken))
		}
	}
	switch {
	case len(r.links) == 0:
		return skips(notApplicable, "The page has no links to its own site.")
	case asked == 0:
		return skips(outOfTime, "There was no time left to follow %s.", counted(len(r.links), "link"))
	}
	return passIf(len(broken) == 0, "%d of %s followed, %d dead%s", asked, counted(len(r.links), "link"), len(broken), examples(broken))
}

func (r reviewed) mixedContent() finding {
	if r.tls == nil {
		return skips(notApplicable, "The page itself is not served over HTTPS.")
	}
	return passIf(len(r.page.insecure) == 0, "%s without TLS%s", counted(len(r.page.insecure), "part"), examples(r.page.insecure))
}

// examples ends a sentence with the first few findings.
func examples(of []string) string {
	if len(of) == 0 {
		return "."
	}
	var all []string
	for _, one := range of[:min(shownOf, len(of))] {
		all = append(all, fence.Clean(one, maxQuote))
	}
	return ": " + strings.Join(all, ", ") + "."
}

func shown(url string) string { return fence.Clean(url, maxShownURL) }
