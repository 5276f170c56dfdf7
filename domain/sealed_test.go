package domain_test

import (
	"reflect"
	"testing"
	"time"

	"humanqa/domain"
)

type leaf struct {
	ID   string `json:"id"`
	Text string `json:"text" sealed:"text"`
	Link string `json:"link" sealed:"link"`
}

type tree struct {
	leaf
	At     time.Time `json:"at"`
	Words  []string  `json:"words,omitempty" sealed:"text"`
	Links  []string  `json:"links" sealed:"link"`
	Secret string    `json:"secret" sealed:"secret"`
	Leaves []leaf    `json:"leaves"`
	Far    *tree     `json:"far"`
	Kept   []string  `json:"kept"`
}

func TestTheTagSealedNamesWhatIsSealed(t *testing.T) {
	t.Parallel()
	want := map[string]domain.Sealed{
		"text": domain.SealedText, "link": domain.SealedLink, "words": domain.SealedText, "links": domain.SealedLink,
		"secret": domain.SealedSecret,
	}
	if got := domain.SealedFields(new(tree)); !reflect.DeepEqual(got, want) {
		t.Errorf("the fields are %v", got)
	}
	if got := domain.SealedFields(struct{ A int }{}); got != nil {
		t.Errorf("nothing has the tag, and the fields are %v", got)
	}
}

func TestTextsAreErasedInACopy(t *testing.T) {
	t.Parallel()
	full := func() tree {
		return tree{
			leaf: leaf{"a", "text", "link"}, At: time.Unix(1, 0), Words: []string{"one", ""}, Links: []string{"one"}, Secret: "s",
			Leaves: []leaf{{"b", "text", "link"}, {ID: "c"}}, Far: &tree{leaf: leaf{Text: "far"}, Leaves: []leaf{}}, Kept: []string{"kept"},
		}
	}
	was := full()
	got := domain.WithoutTexts(was)
	want := tree{
		leaf: leaf{"a", domain.ErasedText, ""}, At: time.Unix(1, 0), Words: []string{domain.ErasedText, ""},
		Leaves: []leaf{{"b", domain.ErasedText, ""}, {ID: "c"}}, Far: &tree{leaf: leaf{Text: domain.ErasedText}, Leaves: []leaf{}},
		Kept: []string{"kept"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("erased it is %+v", got)
	}
	if !reflect.DeepEqual(was, full()) {
		t.Errorf("the original is %+v", was)
	}
	if none := domain.WithoutTexts[[]leaf](nil); none != nil {
		t.Errorf("nothing becomes %v", none)
	}
}
