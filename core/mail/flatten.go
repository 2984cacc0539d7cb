package mail

import (
	"strings"
	"unicode"
)

// maxName is how many characters of a name a mail shows.
const maxName = 64

// flatten makes one line of a chosen name that no mail program shows as a link: it has no control or invisible
// characters, nothing that a link needs, and no dot within a word. A name that is empty then is replaced.
func flatten(name, instead string) string { return flattenTo(maxName, name, instead) }

func flattenTo(most int, name, instead string) string {
	var b strings.Builder
	runes := []rune(strings.ToValidUTF8(name, " "))
	for i, r := range runes {
		switch {
		case strings.ContainsRune(`/\:@<>`, r), !unicode.IsGraphic(r), unicode.Is(unicode.Cf, r):
			b.WriteByte(' ')
		case isDot(r) && i+1 < len(runes) && !unicode.IsSpace(runes[i+1]):
			b.WriteString(". ")
		default:
			b.WriteRune(r)
		}
	}
	flat := strings.Join(strings.Fields(b.String()), " ")
	if short := []rune(flat); len(short) > most {
		flat = strings.TrimSpace(string(short[:most-1])) + "…"
	}
	if flat == "" {
		return instead
	}
	return flat
}

// isDot reports whether programs take a character for the dot of a host name.
func isDot(r rune) bool { return strings.ContainsRune(".。．｡", r) }
