package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/ascii"
)

// The headers of a delivery (spec, "Events").
const (
	HeaderEventID   = "Service-Event-Id"
	HeaderTimestamp = "Service-Timestamp"
	HeaderSignature = "Service-Signature"
	UserAgent       = "Service-Webhooks/1.0"
	ContentType     = "application/json"
)

const signaturePrefix = "v1="

// Timestamp is the value of Service-Timestamp: Unix time in whole seconds.
func Timestamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// Sign is the value of Service-Signature: "v1=" and the lower-case hex HMAC-SHA256 of the timestamp's text, a dot and the
// body as sent. The key is the whole secret, prefix included.
func Sign(secret, timestamp string, body []byte) string {
	return signaturePrefix + hex.EncodeToString(mac(secret, timestamp, body))
}

// Verify checks a signature as a receiver does, in constant time. It does not check the age of the timestamp.
func Verify(secret, timestamp string, body []byte, signature string) bool {
	digest, hasPrefix := strings.CutPrefix(signature, signaturePrefix)
	if !hasPrefix || digest != ascii.Lower(digest) {
		return false
	}
	given, err := hex.DecodeString(digest)
	return err == nil && hmac.Equal(given, mac(secret, timestamp, body))
}

func mac(secret, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(timestamp))
	h.Write([]byte{'.'})
	h.Write(body)
	return h.Sum(nil)
}
