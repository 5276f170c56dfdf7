// BASE_URL=… API_KEY=… WEBHOOK_URL=https://… WEBHOOK_SECRET=… dotnet run quickstart.cs
// Ends with the report: at once with the key of a sandbox (qa_test_…), else when a checker has tested.
using System;
using System.Collections.Specialized;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;
using System.Threading.Tasks;

class Quickstart
{
    static readonly HttpClient Http = new HttpClient();
    static readonly string Secret = Env("WEBHOOK_SECRET");

    static string Env(string name) => Environment.GetEnvironmentVariable(name) ?? "";

    static async Task<JsonElement> Call(string method, string path, object body = null)
    {
        var request = new HttpRequestMessage(new HttpMethod(method), Env("BASE_URL") + path);
        request.Headers.Add("Authorization", "Bearer " + Env("API_KEY"));
        request.Headers.Add("Idempotency-Key", Guid.NewGuid().ToString());
        if (body != null) request.Content = new StringContent(JsonSerializer.Serialize(body), Encoding.UTF8, "application/json");
        var answer = await Http.SendAsync(request);
        var said = JsonDocument.Parse(await answer.Content.ReadAsStringAsync()).RootElement;
        if (answer.IsSuccessStatusCode) return said;
        var hint = said.TryGetProperty("hint", out _) ? said.GetProperty("hint").GetString() : "";
        Console.Error.WriteLine($"{method} {path}: {(int)answer.StatusCode} {said.GetProperty("error")}\n{hint}");
        Environment.Exit(1);
        return said;
    }

    // Receive: WEBHOOK_URL leads here. Verify the raw bytes before you parse them. One of the
    // signatures (Standard Webhooks) has to be right: there are two while a secret is rotated.
    static bool Verify(byte[] body, NameValueCollection headers)
    {
        var now = DateTimeOffset.UtcNow.ToUnixTimeSeconds();
        if (!long.TryParse(headers["webhook-timestamp"], out var at) || Math.Abs(now - at) > 300) return false;
        var key = Secret.StartsWith("whsec_") ? Convert.FromBase64String(Secret.Substring(6)) : Encoding.UTF8.GetBytes(Secret);
        var signed = Encoding.UTF8.GetBytes($"{headers["webhook-id"]}.{at}.").Concat(body).ToArray();
        var want = Encoding.UTF8.GetBytes("v1," + Convert.ToBase64String(new HMACSHA256(key).ComputeHash(signed)));
        return (headers["webhook-signature"] ?? "").Split(' ')
            .Any(got => CryptographicOperations.FixedTimeEquals(want, Encoding.UTF8.GetBytes(got)));
    }

    static async Task<JsonElement> Receive(HttpListener listener)
    {
        for (;;)
        {
            var context = await listener.GetContextAsync();
            var body = new MemoryStream();
            await context.Request.InputStream.CopyToAsync(body);
            var genuine = Verify(body.ToArray(), context.Request.Headers);
            context.Response.StatusCode = genuine ? 204 : 401; // within 10 seconds; the work comes after
            context.Response.Close();
            if (genuine) return JsonDocument.Parse(Encoding.UTF8.GetString(body.ToArray())).RootElement;
        }
    }

    public static async Task Main()
    {
        var port = Env("PORT") == "" ? "8000" : Env("PORT");
        var listener = new HttpListener { Prefixes = { $"http://127.0.0.1:{port}/" } };
        listener.Start();
        Console.WriteLine($"listening on port {port}");
        var job = await Call("POST", "/v1/hosted/test", new
        {
            url = "https://example.com/", feature = "sign in", webhookUrl = Env("WEBHOOK_URL"), webhookSecret = Secret,
        });
        var jobId = job.GetProperty("jobId").GetString();
        Console.WriteLine($"submitted {jobId}");
        if (Env("API_KEY").StartsWith("qa_test_")) await Call("POST", $"/v1/sandbox/jobs/{jobId}/play", new { summary = "Works." });
        for (;;)
        {
            var told = await Receive(listener);
            if (told.GetProperty("event").GetString() == "job.completed" && told.GetProperty("jobId").GetString() == jobId) break;
        }
        var report = await Call("GET", $"/v1/jobs/{jobId}/report");
        Console.WriteLine($"{report.GetProperty("overallStatus")} {report.GetProperty("checkerSummary")}");
    }
}
