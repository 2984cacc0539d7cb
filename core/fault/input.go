package fault

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneOf checks a field that has one of a few values, two at least; VALIDATION_ERROR.
func OneOf[T ~string](field, text string, values ...T) (T, error) {
	if v := T(text); slices.Contains(values, v) {
		return v, nil
	}
	words, last := make([]string, len(values)), len(values)-1
	for i, v := range values {
		words[i] = string(v)
	}
	return "", Invalid(field, "must be %s or %s", strings.Join(words[:last], ", "), words[last])
}

// Label trims and checks a text for people: from least to most characters, none of them a control character; VALIDATION_ERROR.
func Label(field, text string, least, most int) (string, error) {
	text = strings.TrimSpace(text)
	bounds := fmt.Sprintf("%d-%d", least, most)
	if least == 0 {
		bounds = fmt.Sprintf("at most %d", most)
	}
	switch n := utf8.RuneCountInString(text); {
	case !utf8.ValidString(text):
		return "", Invalid(field, "must be valid UTF-8")
	case n < least || n > most:
		return "", Invalid(field, "must have %s characters", bounds)
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", Invalid(field, "must not contain control characters")
	}
	return text, nil
}
