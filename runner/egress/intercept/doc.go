// Package intercept ends the TLS of connections to the hosts that a credential is for,
// and begins it anew towards the real host: each request that passes has its credentials
// taken off and the one of the person's put on, which the sandbox never sees.
//
// An Interceptor has a certificate authority of its own, which lives as long as it does.
// Its key is in the memory of this process alone, and its certificate is good for no other
// names than those of the credentials. What is on the other side is verified as always.
//
// How a request passes:
//
//   - Its authority has to be the credential's host, its method and path among those that
//     are named; CONNECT, other upgrades than a WebSocket that is named, and headers that
//     have a server take it for another one, are refused.
//   - Whatever is known to carry a credential is taken off: headers, cookies, parameters.
//     A request is refused if one of them had anything but the placeholder. So nobody's
//     account is reached but the person's.
//   - The real one is put on once.
//   - The answer is passed on as it comes, without cookies. Where it has the real one, in
//     its headers or its body, asterisks are in its place.
//
// What a body hides isn't seen: a key within it, or the credential in another form.
//
// # Trust
//
// Requests are hostile, and so are answers. net/http reads and writes both, so that what
// leaves is framed by this program, whatever came. Headers, connections and requests in
// hand are bounded.
//
// # Concurrency
//
// An Interceptor is safe for concurrent use. Serve is called once for each connection and
// waits for all that it began.
package intercept
