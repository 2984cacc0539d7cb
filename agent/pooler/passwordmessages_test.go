package pooler

import (
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/floors"
)

// firstMessages are client-first-messages of SCRAM; a good one is "n,,n=,r=nonce".
var firstMessages = []string{
	"", "n", "n,", "n,,", "n,,,", "y,,", "x,,", ",,", "p=tls-server-end-point,,n=,r=a", "p,,", "n,a=shop,n=,r=a", "n,,m=x,n=,r=a",
	"n,,n=", "n,,n=,", "n,,n=,r", "n,,n=,r=", "n,,r=a", "n,,r=a,n=", "n,,n=shop,r=a,", "n,,n=shop,r=a,x", "n,,n=shop,r=a,x=",
	"n,,n=shop,r=a,1=",
	"n,,n=,r=\xff", "n,,n=,r=a b", "n,,n=,r=\x01", "n,,n=\x00,r=a", "y,,n==2C=3D,r=a",
}

// initials stand in place of the first message of a log-in with a password.
var initials = []shape{
	{"a message of SCRAM", func(d dice) []byte { return saslInitial("SCRAM-SHA-256", pick(d, firstMessages...)) }},
	{"a long nonce", func(d dice) []byte { return saslInitial("SCRAM-SHA-256", "n,,n=,r="+d.letters(300, 3000)) }},
	{"a longer nonce", func(d dice) []byte { return saslInitial("SCRAM-SHA-256", "n,,n=,r="+d.letters(4000, 100_000)) }},
	{"a wrong length in SASL", func(d dice) []byte {
		text := pick(d, "n,,n=,r=abc", "", d.letters(0, 300))
		return saslInitialOf("SCRAM-SHA-256", d.length(len(text)), text)
	}},
	{"another mechanism", func(d dice) []byte {
		mechanism := pick(d, "", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-25", "scram-sha-256", "PLAIN", d.letters(1, 3000))
		return saslInitial(mechanism, "n,,n=,r=abc")
	}},
	{"a mechanism alone", func(d dice) []byte {
		return message('p', pick(d, "", "\x00", "SCRAM-SHA-256")+pick(d, "", "\x00", "\x00\x00", "\x00\xff\xff\xff\xff"))
	}},
	{"a plain password", func(d dice) []byte {
		return message('p', pick(d, "shop-pw\x00", "shop-pw", "\x00", "md5abc\x00", d.letters(1, 3000)+"\x00"))
	}},
	{"a password message of another length", func(d dice) []byte {
		body := "SCRAM-SHA-256\x00\x00\x00\x00\x0bn,,n=,r=abc"
		return messageOf('p', d.length(len(body)+4), body)
	}},
	{"another start-up in place of a password", func(d dice) []byte {
		return startup("user", pick(d, askedNames...), "database", pick(d, askedNames...), "options", pick(d, optionTexts...))
	}},
	{"another message in place of a password", func(d dice) []byte { return message(d.bytes(1, 1)[0], d.bytes(0, 40)) }},
}

// final is a kind of second message of a log-in with a password; both is what client and server have drawn.
type final struct {
	name string
	draw func(d dice, both string) []byte
}

func saslFinalOf(format string, args ...any) []byte {
	return message('p', fmt.Sprintf(format, args...))
}

// proof has the right length, and is wrong.
func proof(d dice) string { return base64.StdEncoding.EncodeToString([]byte(d.bytes(32, 32))) }

var finals = []final{
	{"a wrong proof", func(d dice, both string) []byte { return saslFinalOf("c=biws,r=%s,p=%s", both, proof(d)) }},
	{"a proof of another length", func(d dice, both string) []byte {
		return saslFinalOf("c=biws,r=%s,p=%s", both, pick(d, "", "a", "=", "====", "!", d.letters(1, 3000), proof(d)+proof(d)))
	}},
	{"another nonce", func(d dice, both string) []byte {
		other := pick(d, "", both[1:], both+"a", d.letters(len(both), len(both)), d.letters(1, 3000))
		return saslFinalOf("c=biws,r=%s,p=%s", other, proof(d))
	}},
	{"another binding", func(d dice, both string) []byte {
		return saslFinalOf("%s,r=%s,p=%s", pick(d, "", "c", "c=", "c=eSws", "c=cD10bHM=", "x=biws", "c=biws,1="), both, proof(d))
	}},
	{"no proof", func(d dice, both string) []byte {
		return saslFinalOf("c=biws,r=%s%s", both, pick(d, "", ",", ",p", ",x=1", ",x=1,y", ",P=a"))
	}},
	{"something after the proof", func(d dice, both string) []byte {
		return saslFinalOf("c=biws,r=%s,x=1,p=%s%s", both, proof(d), pick(d, ",", ",a=b", "\x00", "\x00,a", " "))
	}},
	{"a part of a final message", func(d dice, both string) []byte {
		whole := "c=biws,r=" + both + ",p="
		return message('p', whole[:d.IntN(len(whole))])
	}},
	{"bytes for a final message", func(d dice, _ string) []byte { return message('p', d.bytes(0, 9000)) }},
	{"something else than a final message", func(d dice, _ string) []byte { return pick(d, initials...).draw(d) }},
}

// nonceless are final messages without a nonce. They end a PgBouncer before 1.26.0 (CVE-2026-19888), and no setting helps against
// that; so only a PgBouncer that says it is newer gets them.
var nonceless = final{"no nonce", func(d dice, both string) []byte {
	return saslFinalOf("c=biws,%sp=%s", pick(d, "", "x=1,", "x="+both+","), proof(d))
}}

func finalsFor(t *testing.T, s *stack) []final {
	t.Helper()
	text := check.Must(s.pooler.Version(t.Context()))(t)
	found := check.Must(floors.Parse(text))(t)
	if found.Number.AtLeast(floors.Number{1, 26}) {
		return append(finals[:len(finals):len(finals)], nonceless)
	}
	return finals
}
