package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// evidence matches a link to kept evidence, behind the service's address.
var evidence = regexp.MustCompile(`^/v1/evidence/[\w?=&%.~-]+$`)

// mostPictures is how many pictures a summary shows.
const mostPictures = 20

// pictures shows the pictures of failures as images in Markdown. Only pictures that the
// service keeps become images: any other host would learn who reads the summary.
func (s *step) pictures(ctx context.Context) (string, error) {
	client, err := s.a.client()
	if err != nil || s.report == "" {
		return "", err
	}
	raw, err := reportsOf(ctx, client, s.out.BatchID, s.out.completed(), "ctrf") // its links last, unlike those of JSON
	if err != nil {
		return "", err
	}
	var report struct {
		Results struct {
			Tests []struct {
				Status string
				Extra  struct {
					ScreenshotURL  string
					ScreenshotURLs []string // all, where there are several
				}
			}
		}
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		return "", fmt.Errorf("read the report: %w", err)
	}
	var b strings.Builder
	shown := 0
	for _, t := range report.Results.Tests {
		links := t.Extra.ScreenshotURLs
		if links == nil {
			links = []string{t.Extra.ScreenshotURL}
		}
		for _, link := range links {
			path, ours := strings.CutPrefix(link, client.Base())
			if t.Status != "failed" || shown == mostPictures || !ours || !evidence.MatchString(path) {
				continue
			}
			shown++
			fmt.Fprintf(&b, "\n[![Picture %d of a failure](%s)](%[2]s)\n", shown, link)
		}
	}
	return b.String(), nil
}
