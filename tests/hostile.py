"""Two ordinary texts, and two that try to break out of a page. The escapes name the invisible characters."""

from __future__ import annotations

A, B = "The coffee here is not good.", "This coffee is bad."


HOSTILE_A = (
    '</script><script>window.hacked=1</script> <img src=x onerror="window.hacked=2"> שלום עולם \u202eevil\u202c '
    "zero\u200bwidth \x00\x1b[31m\r\n" + "x" * 600
)


HOSTILE_B = "\"><svg onload='window.hacked=3'> <!-- &lt;b&gt; ${window.hacked=4} مرحبا 👨‍👩‍👧 \u2028\u2029\ufeff end"
