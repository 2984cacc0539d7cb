// Package webhooksender implements ports.WebhookSender over the network. Customers choose the URLs, so every URL is treated as
// hostile:
//
//   - Every attempt opens a connection of its own, sends one request and closes it. Nothing is reused, for any account, and
//     nothing is sent a second time by the library.
//   - The name is looked up for every attempt, all its addresses are checked, and those very addresses are dialled; the kernel's
//     own view of the address is checked once more before it connects. So a name that answers differently the next time
//     gains nothing.
//   - No proxy of the environment, no redirect, no cookie, no HTTP/2. TLS 1.2 or later, verified.
//   - Ten seconds in total. Of the answer only the header counts; a little of its body is read so that the receiver can finish.
//
// Failures are described in words for the customer, which never contain an address, a resolver's name or a text of the
// receiver.
package webhooksender
