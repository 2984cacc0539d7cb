package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/pgherd/pgherd/core/ascii"
)

// A manifest ends with a checksum of all the text before: of some of it, such as owners, grants and times, a restored copy tells
// nothing, so a flipped bit there would pass. The record of the backup has a SHA-256 of the whole text, which also finds a
// manifest that somebody has written anew.

// sealedSince is the first format with a checksum.
const sealedSince = 4

const (
	sealStart = ",\n  \"checksum\": \""
	sealEnd   = "\"\n}\n"
	sealSize  = len(sealStart) + 2*sha256.Size + len(sealEnd)
	bodyEnd   = "\n}"
)

// seal adds the checksum as the last member of a JSON object.
func seal(text []byte) []byte {
	body := bytes.TrimSuffix(text, []byte(bodyEnd))
	sum := sumOf(body)
	return append(append(append(body, sealStart...), sum...), sealEnd...)
}

// unseal checks and removes the checksum, if the text ends with one.
func unseal(text []byte) (body io.Reader, sealed bool, err error) {
	at := len(text) - sealSize
	if at < 0 || !bytes.HasPrefix(text[at:], []byte(sealStart)) || !bytes.HasSuffix(text, []byte(sealEnd)) {
		return bytes.NewReader(text), false, nil
	}
	if sum := text[at+len(sealStart) : len(text)-len(sealEnd)]; string(sum) != sumOf(text[:at]) {
		return nil, true, fmt.Errorf("%w: its checksum is that of another text", ErrManifest)
	}
	return io.MultiReader(bytes.NewReader(text[:at]), strings.NewReader(bodyEnd)), true, nil
}

// sumOf is the SHA-256 of a text as manifests have it.
func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func isSum(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size && text == ascii.Lower(text)
}
