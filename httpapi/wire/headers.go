package wire

import (
	"mime"
	"slices"
	"strconv"
	"strings"
)

// Matches compares an ETag with the values of If-None-Match, weakly (RFC 9110,
// section 13.1.2).
func Matches(known []string, tag string) bool {
	return slices.ContainsFunc(Listed(known), func(one string) bool {
		return one == "*" || strings.TrimPrefix(one, "W/") == tag
	})
}

// TakesGzip says that an Accept-Encoding names gzip, by itself or by *, and not with
// the weight 0 (RFC 9110, section 12.5.3).
func TakesGzip(accept []string) bool { return Quality(accept, "gzip", "x-gzip") > 0 }

// Listed are the elements of a header that is a list, over all of its lines.
func Listed(lines []string) (list []string) {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

// covers says how specifically a range names a media type or a coding; -1: not at all.
func covers(media, t string) int {
	whole, _, _ := strings.Cut(t, "/")
	switch media {
	case t:
		return 2
	case whole + "/*":
		return 1
	case "*/*", "*":
		return 0
	}
	return -1
}

// Quality is the weight of the most specific range that covers one of the media types, or
// codings (RFC 9110, section 12.5).
func Quality(accept []string, types ...string) float64 {
	best, specific := 0.0, -1
	for one := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		media, params, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		q := 1.0
		if s, there := params["q"]; there {
			if q, err = strconv.ParseFloat(s, 64); err != nil {
				continue
			}
		}
		for _, t := range types {
			if n := covers(media, t); n > specific || n == specific && n >= 0 && q > best {
				best, specific = q, n
			}
		}
	}
	return best
}
