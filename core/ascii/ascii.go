// Package ascii has the one rule by which texts that name something are compared: letter case means nothing among A to Z, and
// every other character is only itself. Unicode's folding, which the standard library's package strings has, makes other
// characters into letters: U+212A and U+0130 become k and i in lower case, U+017F becomes S in upper case.
package ascii

// Lower is the text with A to Z in lower case.
func Lower(text string) string {
	for i := range len(text) {
		if isUpper(text[i]) {
			b := []byte(text)
			for ; i < len(b); i++ {
				b[i] = lower(b[i])
			}
			return string(b)
		}
	}
	return text
}

// Equal reports whether two texts differ in the case of A to Z only.
func Equal(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

// Visible reports whether the text has printable characters of ASCII only, and no spaces. The empty text is visible.
func Visible(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// Base62 reports whether the text has only digits and letters of ASCII. The empty text is one.
func Base62(text string) bool {
	for i := range len(text) {
		if c := lower(text[i]); (c < '0' || c > '9') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

func lower(c byte) byte {
	if isUpper(c) {
		c += 'a' - 'A'
	}
	return c
}
