package pooler

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"strings"
)

// Codes of the protocol: of packets without a type, which are the first ones, and of requests for a password.
const (
	version3, version32            = 3 << 16, 3<<16 + 2
	cancelRequest                  = 80877102
	sslRequest, gssRequest         = 80877103, 80877104
	saslAsked, saslContinue uint32 = 10, 11
)

// packet is a packet without a type and with the right length.
func packet(code uint32, body string) []byte { return packetOf(uint32(len(body)+8), code, body) }

// packetOf is a packet that says a length which need not be its own.
func packetOf(length, code uint32, body string) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, length), code)
	return append(head, body...)
}

// message is a message with a type and the right length.
func message(kind byte, body string) []byte { return messageOf(kind, uint32(len(body)+4), body) }

func messageOf(kind byte, length uint32, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, length), body...)
}

// startup is a start-up packet with names and values in turn.
func startup(namesAndValues ...string) []byte { return packet(version3, parameters(namesAndValues...)) }

func parameters(namesAndValues ...string) string {
	return strings.Join(append(namesAndValues, "", ""), "\x00")[:sumOf(namesAndValues)+1]
}

func sumOf(texts []string) (n int) {
	for _, text := range texts {
		n += len(text) + 1
	}
	return n
}

// saslInitial begins a log-in with SCRAM.
func saslInitial(mechanism, first string) []byte {
	return saslInitialOf(mechanism, uint32(len(first)), first)
}

func saslInitialOf(mechanism string, length uint32, first string) []byte {
	return message('p', mechanism+"\x00"+string(binary.BigEndian.AppendUint32(nil, length))+first)
}

// readAnswer reads one message of the server: its type, the number that begins it, and the rest.
func readAnswer(r io.Reader) (kind byte, code uint32, rest string, err error) {
	head := make([]byte, 9)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, 0, "", err
	}
	body := make([]byte, max(4, binary.BigEndian.Uint32(head[1:]))-8)
	_, err = io.ReadFull(r, body)
	return head[0], binary.BigEndian.Uint32(head[5:]), string(body), err
}

// dice draws what a stranger does.
type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// bytes draws some bytes, letters some letters.
func (d dice) bytes(least, most int) string {
	drawn := make([]byte, least+d.IntN(most-least+1))
	for i := range drawn {
		drawn[i] = byte(d.Uint32())
	}
	return string(drawn)
}

func (d dice) letters(least, most int) string {
	drawn := []byte(d.bytes(least, most))
	for i, b := range drawn {
		drawn[i] = 'a' + b%26
	}
	return string(drawn)
}

// several joins some of the pieces.
func (d dice) several(most int, pieces ...string) string {
	var text strings.Builder
	for range 1 + d.IntN(most) {
		text.WriteString(pick(d, pieces...))
	}
	return text.String()
}

// length draws a length that is mostly wrong for n bytes.
func (d dice) length(n int) uint32 {
	right := uint32(n)
	return pick(d, 0, 1, 3, 4, 5, 7, 8, 9, right-1, right, right+1, right/2, right*2, 1<<16-1, 1<<16, 1<<24, 1<<30-64, 1<<30-63,
		1<<31-1, 1<<31, 1<<32-4, 1<<32-1, d.Uint32())
}
