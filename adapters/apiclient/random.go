package apiclient

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
)

func (c *Client) read(b []byte) error {
	if _, err := io.ReadFull(c.random, b); err != nil {
		return fmt.Errorf("apiclient: the source of randomness: %w", err)
	}
	return nil
}

// jitter is a number of at least 0 and below 1.
func (c *Client) jitter() (float64, error) {
	var b [4]byte
	err := c.read(b[:])
	return float64(binary.BigEndian.Uint32(b[:])) / (1 << 32), err
}

func (c *Client) newKey() (string, error) {
	var b [16]byte
	err := c.read(b[:])
	return hex.EncodeToString(b[:]), err
}
