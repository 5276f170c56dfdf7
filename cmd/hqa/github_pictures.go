package main

import (
	"fmt"
	"regexp"
	"strings"
)

// mostPictures is how many pictures a summary shows.
const mostPictures = 20

var (
	servicesPage  = regexp.MustCompile(`(?m)^- \*\*Page:\*\* <(https?://[^/>]+)/`)
	failedRow     = regexp.MustCompile(`(?m)^\| fail \|.*$`)
	linkInAReport = regexp.MustCompile(`<(https?://[^<>\s]+)>`)
)

// pictures shows the pictures of failures in a report in Markdown. Only pictures that the
// service keeps become images: any other host would learn who reads the summary. Texts of
// testers cannot write such links, since the report escapes them.
func pictures(report string) string {
	services := servicesPage.FindStringSubmatch(report)
	if services == nil {
		return ""
	}
	var b strings.Builder
	shown := 0
	for _, row := range failedRow.FindAllString(report, -1) {
		for _, link := range linkInAReport.FindAllStringSubmatch(row, -1) {
			if shown == mostPictures || !strings.HasPrefix(link[1], services[1]+"/v1/evidence/") {
				continue
			}
			shown++
			fmt.Fprintf(&b, "\n[![Picture %d of a failure](%s)](%s)\n", shown, link[1], link[1])
		}
	}
	return b.String()
}
