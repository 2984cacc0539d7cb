package webhook

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// vector is one line of testdata/signatures.json, against which receivers in any language can be tested.
type vector struct {
	Name       string `json:"name"`
	Secret     string `json:"secret"`
	Timestamp  string `json:"timestamp"`  // of Service-Timestamp
	BodyBase64 string `json:"bodyBase64"` // the raw request body
	Signature  string `json:"signature"`  // of Service-Signature
	Valid      bool   `json:"valid"`
}

const (
	vectorSecret = "whsec_0123456789ABCDEFGHIJKLMNOPQRSTUV"
	vectorTime   = "1767605400"
	vectorBody   = `{"id":"0189abcd-ef01-4234-8567-89abcdef0123","event":"backup.succeeded","createdAt":"2026-01-05T09:30:00Z",` +
		`"data":{"operationId":"0189abcd-ef01-4234-8567-89abcdef0123","databaseId":"1189abcd-ef01-4234-8567-89abcdef0123",` +
		`"databaseName":"shop","status":"succeeded","stage":"finished","progress":100,"error":null}}`
)

func vectors() []vector {
	all := []vector{
		signed("an event", vectorSecret, vectorTime, vectorBody),
		signed("an empty body", vectorSecret, vectorTime, ""),
		signed("spaces and line ends count", vectorSecret, vectorTime, "{ \"a\" : 1 }\r\n"),
		signed("text beyond ASCII", vectorSecret, vectorTime, `{"name":"Käse 🧀"}`),
		signed("bytes that are no text", vectorSecret, vectorTime, "\x00\xff\xfe."),
		signed("a dot at the start of the body", vectorSecret, vectorTime, ".1"),
		signed("another time", vectorSecret, "1", vectorBody),
		signed("another secret", "whsec_VUTSRQPONMLKJIHGFEDCBA9876543210", vectorTime, vectorBody),
		signed("a large body", vectorSecret, vectorTime, strings.Repeat("0123456789abcdef", 512)),
	}
	right := all[0]
	spoilt := func(name string, spoil func(v *vector)) {
		v := right
		v.Name, v.Valid = name, false
		spoil(&v)
		all = append(all, v)
	}
	encode := func(body string) string { return base64.StdEncoding.EncodeToString([]byte(body)) }
	spoilt("the body was changed", func(v *vector) { v.BodyBase64 = encode(strings.Replace(vectorBody, "shop", "shoq", 1)) })
	spoilt("the body was formatted anew", func(v *vector) { v.BodyBase64 = encode(strings.ReplaceAll(vectorBody, ",", ", ")) })
	spoilt("the time was changed", func(v *vector) { v.Timestamp = "1767605401" })
	spoilt("a leading zero was added to the time", func(v *vector) { v.Timestamp = "0" + vectorTime })
	spoilt("the secret was rotated", func(v *vector) { v.Secret = "whsec_rotatedrotatedrotatedrotatedrota" })
	spoilt("the secret's prefix was left out", func(v *vector) { v.Secret = strings.TrimPrefix(vectorSecret, SecretPrefix) })
	spoilt("no version", func(v *vector) { v.Signature = strings.TrimPrefix(v.Signature, "v1=") })
	spoilt("another version", func(v *vector) { v.Signature = "v2=" + strings.TrimPrefix(v.Signature, "v1=") })
	spoilt("upper-case digits", func(v *vector) { v.Signature = "v1=" + strings.ToUpper(strings.TrimPrefix(v.Signature, "v1=")) })
	spoilt("cut short", func(v *vector) { v.Signature = v.Signature[:len(v.Signature)-2] })
	spoilt("more digits", func(v *vector) { v.Signature += "00" })
	spoilt("no digits", func(v *vector) { v.Signature = "v1=" })
	spoilt("empty", func(v *vector) { v.Signature = "" })
	spoilt("no hexadecimal", func(v *vector) { v.Signature = "v1=" + strings.Repeat("zz", 32) })
	return all
}

func signed(name, secret, timestamp, body string) vector {
	return vector{
		Name: name, Secret: secret, Timestamp: timestamp, BodyBase64: base64.StdEncoding.EncodeToString([]byte(body)),
		Signature: Sign(secret, timestamp, []byte(body)), Valid: true,
	}
}

func TestGoldenSignatures(t *testing.T) {
	text, err := json.MarshalIndent(vectors(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	const path = "testdata/signatures.json"
	if os.Getenv("PGHERD_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != string(text)+"\n" {
		t.Errorf("%s does not follow from the core any more; run make generate (%v)", path, err)
	}
}

func TestVerify(t *testing.T) {
	for _, v := range vectors() {
		body, err := base64.StdEncoding.DecodeString(v.BodyBase64)
		if err != nil || Verify(v.Secret, v.Timestamp, body, v.Signature) != v.Valid {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

// The digest was computed with another implementation: openssl dgst -sha256 -hmac.
func TestSignIsHMAC(t *testing.T) {
	at := time.Date(2026, 1, 5, 9, 30, 0, 999_999_999, time.UTC)
	if got := Timestamp(at); got != vectorTime {
		t.Error(got)
	}
	const want = "v1=0dd547a28902956b8430ed55f1cfab29bb10c86530f65eb5c2392c0aff73bf5a"
	if got := Sign(vectorSecret, vectorTime, []byte(`{"a":1}`)); got != want {
		t.Error(got)
	}
}

func TestSecrets(t *testing.T) {
	if s := NewSecret(strings.Repeat("aB3", 20)); s != "whsec_"+strings.Repeat("aB3", 11)[:32] {
		t.Error(s)
	}
	if SecretContext("a") == SecretContext("b") {
		t.Error("two endpoints' secrets are bound to the same")
	}
}

// What was signed verifies; whatever else differs in any way does not.
func FuzzVerify(f *testing.F) {
	for _, v := range vectors() {
		body, _ := base64.StdEncoding.DecodeString(v.BodyBase64)
		f.Add(v.Secret, v.Timestamp, body, v.Signature)
	}
	f.Fuzz(func(t *testing.T, secret, timestamp string, body []byte, signature string) {
		right := Sign(secret, timestamp, body)
		if !Verify(secret, timestamp, body, right) {
			t.Fatal("what was signed does not verify")
		}
		if Verify(secret, timestamp, body, signature) != (signature == right) {
			t.Fatalf("%q against %q", signature, right)
		}
		if Verify(secret, timestamp, append(body, 'x'), right) || Verify(secret, timestamp+"0", body, right) {
			t.Fatal("a change goes unnoticed")
		}
	})
}
