package ai

import (
	"bytes"
	_ "embed"
	"strings"

	"go.yaml.in/yaml/v3"

	"humanqa/domain/job"
)

//go:embed catalogue.yaml
var catalogueFile []byte

// catalogue is the content of catalogue.yaml, whose comments explain it.
var catalogue = func() (c struct {
	Basics []item
	Topics []topic
	Types  map[job.Type][]item
	Review []check
}) {
	file := yaml.NewDecoder(bytes.NewReader(catalogueFile))
	file.KnownFields(true)
	if err := file.Decode(&c); err != nil {
		panic(err) // a file of ours
	}
	return c
}()

// item is an entry of the catalogue.
type item struct {
	Description string `yaml:"do"`
	Expected    string `yaml:"expect"`
	Severity    job.Severity
}

// topic is a part of an app that a brief, or an item, may speak of.
type topic struct {
	Label string
	Stems []string
	Items []item

	fix string // of one check of a review; no advice fits every failure of a topic
}

func (t topic) matches(words []string) bool {
	for _, stem := range t.Stems {
		first, second, pair := strings.Cut(stem, " ")
		for i, word := range words {
			switch {
			case !pair && wordMatches(word, first):
				return true
			case pair && word == first && i+1 < len(words) && wordMatches(words[i+1], second):
				return true
			}
		}
	}
	return false
}

func wordMatches(word, stem string) bool {
	if exact, ok := strings.CutSuffix(stem, "."); ok {
		return word == exact
	}
	return strings.HasPrefix(word, stem)
}

// general stands for an item that no topic matches.
var general = topic{Label: "General"}

// firstTopic is the first topic that the words speak of, or general.
func firstTopic(words []string) topic {
	for _, t := range catalogue.Topics {
		if t.matches(words) {
			return t
		}
	}
	return general
}

// security is a topic of reviews alone: it takes no person to look at it.
const security = "Security"

// topicByKey gives the topics of the catalogue's own items, since their words could match
// a wrong topic.
var topicByKey = func() map[string]topic {
	known := make(map[string]topic)
	for _, i := range catalogue.Basics {
		known[job.ReadableKey(i.Description)] = general
	}
	for _, c := range catalogue.Review {
		known[c.Key] = topic{Label: c.Topic, fix: c.Fix}
	}
	for _, t := range catalogue.Topics {
		for _, i := range t.Items {
			known[job.ReadableKey(i.Description)] = t
		}
	}
	return known
}()

// topicOf is the first topic that a report's item speaks of, or general.
func topicOf(i job.ReportItem) topic {
	if t, ok := topicByKey[i.Key]; ok {
		return t
	}
	return firstTopic(wordsOf(i.Description, i.ExpectedOutcome))
}
