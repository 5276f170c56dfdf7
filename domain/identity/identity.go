// Package identity tells which spellings are one text, one host, one name or one secret.
// It has one function for each, and all keys, look-ups and searches use them (decisions,
// "Identity"). A function for the spellings of older versions stands beside each form that
// is stored.
package identity

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/secure/precis"
	"golang.org/x/text/unicode/norm"
)

// Fold gives a text in the form in which texts are compared and searched: NFC, case
// folded, one blank for each run of white space and controls, and nothing that shows
// nothing.
func Fold(text string) string {
	shown := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case ignorable(r):
			return -1
		}
		return r
	}, text)
	// Lower case first: Fold alone swaps the two cases of Cherokee.
	folded := cases.Fold().String(strings.ToLower(norm.NFD.String(shown)))
	return norm.NFC.String(strings.Join(strings.Fields(folded), " "))
}

// ignorable says that a character is default-ignorable: no font shows it.
func ignorable(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// Words gives the letters and digits of a folded text, word by word.
func Words(text string) []string {
	return strings.FieldsFunc(Fold(text), func(r rune) bool { return !ofWord(r) })
}

func ofWord(r rune) bool { return unicode.In(r, unicode.L, unicode.M, unicode.N) }

// signs change the meaning of the word beside which they stand: -5, C#, R&D.
const signs = "-+#%&/."

// Text gives the key of a text: that of Fold without punctuation. A sign counts beside a
// letter or digit; a full stop counts only before one, because behind a word it ends a
// sentence.
func Text(text string) string {
	all := []rune(Fold(text))
	for i, r := range all {
		before, after := i > 0 && ofWord(all[i-1]), i+1 < len(all) && ofWord(all[i+1])
		if unicode.IsPunct(r) && (!strings.ContainsRune(signs, r) || !after && (!before || r == '.')) {
			all[i] = ' '
		}
	}
	return strings.Join(strings.Fields(string(all)), " ")
}

// OlderTexts gives the keys that older versions gave to the text, in each of its spellings.
func OlderTexts(text string) []string {
	return spellings(text, func(text string) string {
		return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsPunct(r) || unicode.IsControl(r)
		}), " ")
	})
}

// Name gives the form of a sign-in name.
func Name(name string) string { return Fold(name) }

// OlderNames gives the forms that a sign-in name may have from older versions, the likeliest first.
func OlderNames(name string) []string {
	return spellings(name, func(name string) string { return strings.ToLower(strings.TrimSpace(name)) })
}

// Secret gives the form of a password (RFC 8265, OpaqueString). Characters that the RFC
// refuses stay: no rule forbids them in a password here.
func Secret(password string) string {
	if secret, err := precis.OpaqueString.String(password); err == nil {
		return secret
	}
	return norm.NFC.String(password)
}

// OlderSecrets gives the spellings that a password may have from older versions.
func OlderSecrets(password string) []string {
	return spellings(password, func(password string) string { return password })
}

// spellings gives the form of a text as it is written, composed and decomposed: systems
// type either. Each form stands there once.
func spellings(text string, form func(string) string) (forms []string) {
	for _, spelled := range []string{text, norm.NFC.String(text), norm.NFD.String(text)} {
		if f := form(spelled); !slices.Contains(forms, f) {
			forms = append(forms, f)
		}
	}
	return forms
}
